// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestTheCollectorProfilesItself checks what `make run` does before anybody pushes: it writes profiles of the collector
// to the folder and the console, and logs how to push others.
func TestTheCollectorProfilesItself(t *testing.T) {
	c := startQuickstart(t, "--set=receivers.pprof.self.collection_interval=1s")
	wanted := []string{"cpu", "alloc_space", "goroutine"}
	var lines []pprofile.Profiles
	require.Eventually(t, func() bool {
		lines = c.output(t)["otelcol-profiles"]
		types := sampleTypes(profilesIn(lines...))
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
	require.Contains(t, c.ownMetrics(t), "otelcol_receiver_accepted_profile_samples")
}
