// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOwnFlameGraph starts the quickstart as `make run` does: the log has the page's address, and soon there is a flame
// graph of the collector itself, also as pprof.
func TestOwnFlameGraph(t *testing.T) {
	c := launch(t, quickstartConfig)
	started := time.Now()
	_, port, _ := strings.Cut(c.graphs, ":")
	require.Contains(t, c.Log.String(), "open http://localhost:"+port+"/")
	page := "http://" + c.graphs
	var took time.Duration
	require.Eventually(t, func() bool {
		var list struct {
			Profiles []struct {
				Service, Profile, Type string
				Samples                int
			}
		}
		require.NoError(t, json.Unmarshal([]byte(requireGet(t, page+"/api/profiles")), &list))
		for _, p := range list.Profiles {
			var graph struct{ Nodes struct{ Frame []int } }
			query := url.Values{"service": {p.Service}, "profile": {p.Profile}, "type": {p.Type}}.Encode()
			require.NoError(t, json.Unmarshal([]byte(requireGet(t, page+"/api/flamegraph?"+query)), &graph))
			if len(graph.Nodes.Frame) > 5 {
				took = time.Since(started)
				require.NotEmpty(t, requireGet(t, page+"/profiles/"+p.Service+"/"+p.Profile))
				return true
			}
		}
		return false
	}, startTimeout, 50*time.Millisecond)
	// The README promises ten seconds. A busy machine may need longer, so the test does not require it.
	t.Logf("a flame graph after %v", took)
}
