// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestReadmeDefaults(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "README.md", "| key | type | default | bound | meaning |")
	keys := requireDefaults(t, rows, "", reflect.ValueOf(createDefaultConfig()).Elem())
	assert.Len(t, rows, keys)
}

// requireDefaults compares the rows of the keys below prefix with their defaults, and returns how many keys there are.
func requireDefaults(t *testing.T, rows map[string][]string, prefix string, defaults reflect.Value) (keys int) {
	for i := range defaults.NumField() {
		key := defaults.Type().Field(i).Tag.Get("mapstructure")
		switch {
		case key == "": // no key
		case defaults.Field(i).Kind() == reflect.Struct:
			keys += requireDefaults(t, rows, prefix+key+".", defaults.Field(i))
		case assert.Contains(t, rows, prefix+key):
			assert.Equal(t, fmt.Sprint(defaults.Field(i).Interface()), rows[prefix+key][2], key)
			keys++
		}
	}
	return keys
}

// TestMetadata compares metadata.yaml with what the code really makes.
func TestMetadata(t *testing.T) {
	declared := profiletest.LoadMetadata(t)
	assert.Equal(t, componentType.String(), declared.Type)
	assert.Equal(t, map[string][]string{"alpha": {"profiles"}}, declared.Status.Stability)
	assert.Equal(t, compact.Tables[:], declared.Attributes["table"].Enum)

	f := start(t, nil)
	m, err := newMetrics(f.telemetry.NewTelemetrySettings(), f.settings().ID, func() int { return 0 })
	require.NoError(t, err)
	countEverything(t, m)
	for short, want := range declared.Telemetry.Metrics {
		made, err := f.telemetry.GetMetric("otelcol_" + short)
		if !assert.NoError(t, err) {
			continue
		}
		assert.Equal(t, want.Description, made.Description)
		assert.Equal(t, want.Unit, made.Unit)
		sum := made.Data.(metricdata.Sum[int64])
		assert.Equal(t, want.Sum.Monotonic, sum.IsMonotonic)
		for _, point := range sum.DataPoints {
			var keys []string
			for _, kv := range point.Attributes.ToSlice() {
				keys = append(keys, string(kv.Key))
				assert.Contains(t, declared.Attributes, string(kv.Key))
			}
			assert.ElementsMatch(t, want.Attributes, keys, short)
		}
	}
	// Beside the counters there is one metric that is observed.
	counters := 0
	for i := range reflect.TypeFor[metrics]().NumField() {
		if reflect.TypeFor[metrics]().Field(i).Type.Name() == "Int64Counter" {
			counters++
		}
	}
	assert.Len(t, declared.Telemetry.Metrics, counters+1)
}

func countEverything(t *testing.T, m *metrics) {
	var stats compact.Stats
	stats.Samples, stats.Profiles = 1, 1
	for i := range stats.Dropped {
		stats.Dropped[i] = 1
	}
	for i := range stats.Repairs {
		stats.Repairs[i] = 1
	}
	part := compact.Part{SampleCount: 1, ProfileCount: 1}
	for i := range stats.Entries {
		stats.Entries[i], part.Entries[i] = 1, 1
	}
	m.countIncoming(t.Context(), stats)
	m.countIncomingBytes(t.Context(), message("shop", 1))
	m.countOutgoing(t.Context(), &part, 1, 1)
	m.splits.Add(t.Context(), 1, m.own)
	m.oversized.Add(t.Context(), 1, m.own)
	m.retries.Add(t.Context(), 1, m.own)
	for _, why := range m.losses {
		m.failed.Add(t.Context(), 1, why)
	}
	for _, why := range m.reasons {
		m.batches.Add(t.Context(), 1, why)
	}
}

func TestReadmeMetrics(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "README.md", "| metric | unit | attributes | meaning |")
	declared := profiletest.LoadMetadata(t).Telemetry.Metrics
	assert.Len(t, rows, len(declared))
	for name, metric := range declared {
		cells := rows["otelcol_"+name]
		if !assert.Len(t, cells, 4, name) {
			continue
		}
		assert.Equal(t, metric.Unit, cells[1])
		assert.Equal(t, metric.Attributes, strings.Split(cells[2], "`, `"))
		assert.Equal(t, metric.Description, cells[3])
	}
}

func TestReadmeReasons(t *testing.T) {
	var dropped, repaired []string
	for cells := range profiletest.ReadmeTable(t, "README.md", "| `reason` of a dropped sample | |") {
		dropped = append(dropped, strings.Split(cells, "`, `")...)
	}
	for fault := range profiletest.ReadmeTable(t, "README.md", "| `fault` that costs no sample | |") {
		repaired = append(repaired, fault)
	}
	var reasons, faults []string
	for i := range compact.NumDropReasons {
		reasons = append(reasons, compact.DropReason(i).String())
	}
	for i := range compact.NumRepairs {
		faults = append(faults, compact.Repair(i).String())
	}
	assert.ElementsMatch(t, reasons, dropped)
	assert.ElementsMatch(t, faults, repaired)

	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for i := range numReasons {
		assert.Contains(t, string(text), "`"+reason(i).String()+"`")
	}
	for i := range numLosses {
		assert.Contains(t, string(text), "`"+loss(i).String()+"`")
	}
}
