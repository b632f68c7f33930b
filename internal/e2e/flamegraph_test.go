// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOwnFlameGraph starts the quickstart as `make run` does: the log has the page's address, and within ten seconds
// there is a flame graph of the collector itself, also as pprof.
func TestOwnFlameGraph(t *testing.T) {
	c := startQuickstart(t)
	started := time.Now()
	_, port, _ := strings.Cut(c.graphs, ":")
	require.Contains(t, c.Log.String(), "open http://localhost:"+port+"/")
	get := func(path string) []byte {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.graphs+path, http.NoBody)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, body)
		return body
	}
	var took time.Duration
	require.Eventually(t, func() bool {
		var list struct {
			Profiles []struct {
				Service, Profile, Type string
				Samples                int
			}
		}
		require.NoError(t, json.Unmarshal(get("/api/profiles"), &list))
		for _, p := range list.Profiles {
			var graph struct{ Nodes struct{ Frame []int } }
			query := url.Values{"service": {p.Service}, "profile": {p.Profile}, "type": {p.Type}}.Encode()
			require.NoError(t, json.Unmarshal(get("/api/flamegraph?"+query), &graph))
			if len(graph.Nodes.Frame) > 5 {
				took = time.Since(started)
				require.NotEmpty(t, get("/profiles/"+p.Service+"/"+p.Profile))
				return true
			}
		}
		return false
	}, startTimeout, 50*time.Millisecond)
	// Not a limit on speed: it is the time until the first profile is taken, far below the ten seconds on an idle machine.
	t.Logf("a flame graph after %v", took)
}
