// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestMetadata compares metadata.yaml with what the code really makes.
func TestMetadata(t *testing.T) {
	declared := profiletest.LoadMetadata(t)
	for i, format := range declared.Attributes["format"].Enum {
		assert.Equal(t, records.Format(i).String(), format)
	}
	for i, typ := range declared.Attributes["type"].Enum {
		assert.Equal(t, records.Type(i).String(), typ)
	}
	for i, source := range declared.Attributes["source"].Enum {
		assert.Equal(t, records.Source(i).String(), source)
	}
	assert.Len(t, declared.Attributes["format"].Enum, records.NumFormats)
	assert.Len(t, declared.Attributes["type"].Enum, records.NumTypes)
	assert.Len(t, declared.Attributes["source"].Enum, records.NumSources)
	set, telemetry := settings(t)
	require.NoError(t, toProfilesOf(t, set, &consumertest.ProfilesSink{}).ConsumeLogs(t.Context(), mixed(t)))
	for _, noun := range []string{"records", "profiles", "samples", "rejected_records", "repaired"} {
		_, err := telemetry.GetMetric("otelcol_connector_splunk_profiling_" + noun)
		assert.NoError(t, err)
	}
}
