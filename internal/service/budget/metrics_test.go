// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Several receivers report one budget, until the last of them stops; receivers of the next configuration report it
// again.
func TestWatch(t *testing.T) {
	SetMemoryLimit(800 << 20)
	reservation := Process().Begin()
	defer reservation.Release()
	require.NoError(t, reservation.ReserveBody(t.Context(), 1000))
	for range 2 {
		tel := componenttest.NewTelemetry()
		stopFirst, err := Watch(tel.NewTelemetrySettings())
		require.NoError(t, err)
		stopSecond, err := Watch(tel.NewTelemetrySettings())
		require.NoError(t, err)
		require.NoError(t, stopFirst())
		require.NoError(t, stopFirst(), "a second call does nothing")

		require.Len(t, Metrics, 2)
		for name := range Metrics {
			got, err := tel.GetMetric(name)
			require.NoError(t, err)
			byPart := map[string]int64{}
			for _, point := range got.Data.(metricdata.Gauge[int64]).DataPoints {
				part, _ := point.Attributes.Value("part")
				byPart[part.AsString()] = point.Value
			}
			if name == "otelcol_process_budget_used" {
				assert.Equal(t, map[string]int64{"bodies": 1000, "profiles": 0}, byPart)
			} else {
				assert.Equal(t, map[string]int64{"bodies": 75 << 20, "profiles": 225 << 20}, byPart)
			}
		}
		require.NoError(t, stopSecond())
		_, err = tel.GetMetric("otelcol_process_budget_used")
		require.Error(t, err, "nobody reports it any more")
		require.NoError(t, tel.Shutdown(t.Context()))
	}
}
