// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestTheCollectorProfilesItself expects what `make run` promises before anybody has pushed anything: profiles of
// the collector, in the folder and on the console, and a line that says how to push one's own.
func TestTheCollectorProfilesItself(t *testing.T) {
	c := startQuickstart(t, "--set=receivers.pprof.self.collection_interval=1s")
	wanted := []string{"cpu", "alloc_space", "goroutine"}
	var lines []pprofile.Profiles
	require.Eventually(t, func() bool {
		lines = c.output(t)["otelcol-profiles"]
		types := sampleTypes(lines)
		for _, name := range wanted {
			if !types[name] {
				return false
			}
		}
		return true
	}, startTimeout, 200*time.Millisecond, "types of samples wanted: %v", wanted)
	for _, pd := range lines {
		require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
	}

	log := c.Log.String()
	require.Contains(t, log, "curl --data-binary")
	require.Contains(t, log, c.endpoint+"/v1/pprof?service.name=")
	require.Contains(t, log, `"resource profiles": 1`, "the debug exporter's line")
	require.Contains(t, c.ownMetrics(t), "otelcol_receiver_accepted_profile_samples")
}

func sampleTypes(lines []pprofile.Profiles) map[string]bool {
	types := map[string]bool{}
	for _, pd := range lines {
		for _, p := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			types[pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex()))] = true
		}
	}
	return types
}

// ownMetrics gives the collector's metrics page.
func (c *collector) ownMetrics(t *testing.T) string {
	t.Helper()
	response, err := client.Get("http://" + c.metrics + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	var page strings.Builder
	_, err = io.Copy(&page, response.Body)
	require.NoError(t, err)
	return page.String()
}
