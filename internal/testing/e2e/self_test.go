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

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestTheCollectorProfilesItself checks what `make run` does before anybody pushes: the log has the page's address and
// how to push, and soon there is a flame graph of the collector itself, also as pprof. Profiles of each kind are
// conformant.
func TestTheCollectorProfilesItself(t *testing.T) {
	c := startQuickstart(t, "--set=receivers.pprof.self.collection_interval=1s")
	log := c.Log.String()
	_, port, _ := strings.Cut(c.graphs, ":")
	require.Contains(t, log, "open http://localhost:"+port+"/")
	require.Contains(t, log, "curl --data-binary")
	require.Contains(t, log, c.endpoint+"/v1/pprof?service.name=")
	page := "http://" + c.graphs
	require.Eventually(t, func() bool {
		var list struct {
			Profiles []struct{ Service, Profile, Type string }
		}
		require.NoError(t, json.Unmarshal([]byte(requireGet(t, page+"/api/profiles")), &list))
		for _, p := range list.Profiles {
			var graph struct{ Nodes struct{ Frame []int } }
			query := url.Values{"service": {p.Service}, "profile": {p.Profile}, "type": {p.Type}}.Encode()
			require.NoError(t, json.Unmarshal([]byte(requireGet(t, page+"/api/flamegraph?"+query)), &graph))
			if len(graph.Nodes.Frame) > 5 {
				require.NotEmpty(t, requireGet(t, page+"/profiles/"+p.Service+"/"+p.Profile))
				return true
			}
		}
		return false
	}, startTimeout, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		types := sampleTypes(profilesIn(c.output(t)["otelcol-profiles"]...))
		return types["cpu"] && types["alloc_space"] && types["goroutine"]
	}, startTimeout, 200*time.Millisecond)
	for _, pd := range c.output(t)["otelcol-profiles"] {
		require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
	}
	require.Contains(t, c.ownMetrics(t), "otelcol_receiver_accepted_profile_samples")
}
