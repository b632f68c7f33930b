// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package cpuprofile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
)

// Samples of an idle program are left out, and counted.
func TestIdleSamplesAreCounted(t *testing.T) {
	_, stats, err := Decode([]byte(`{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2,3]},
		{"id":2,"callFrame":{"functionName":"(idle)"}},{"id":3,"callFrame":{"functionName":"work"}}],
		"startTime":1700000000000000,"endTime":1700000000004000,"samples":[3,2,2,3],"timeDeltas":[0,1000,1000,1000]}`), events.Options{})
	require.NoError(t, err)
	require.Equal(t, 2, stats.Events)
	require.Equal(t, 2, stats.Filtered)
}
