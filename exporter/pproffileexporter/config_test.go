// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproffileexporter

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Every fault of a configuration is named.
func TestFaultsOfConfigurations(t *testing.T) {
	for want, section := range map[string]map[string]any{
		"`directory` must be set":                       {"directory": ""},
		"`max_age` must not be negative":                {"max_age": "-1s"},
		"`max_bytes` must not be negative":              {"max_bytes": -1},
		"`name` must end in .pb.gz":                     {"name": "x"},
		"`name` must be a plain path below `directory`": {"name": "../{profile}.pb.gz"},
		"`name` must have a key between { and }":        {"name": "{}.pb.gz"},
		"`name` is too long between two slashes":        {"name": "x/" + strings.Repeat("{a}", 8) + ".pb.gz"},
		"`name` has a } without a {":                    {"name": "a}.pb.gz"},
	} {
		_, err := collectortest.LoadConfig(createDefaultConfig().(*Config), section)
		assert.ErrorContains(t, err, want)
	}
}

// TestMetadata makes something of everything that is counted, by the names of metadata.yaml.
func TestMetadata(t *testing.T) {
	f := startExporter(t, t.TempDir(), map[string]any{"max_bytes": 1})
	malformed := small("shop", profiletest.Value(1, "leaf"))
	profiletest.SampleAt(malformed, 0).SetStackIndex(99)
	f.send(malformed, small("shop"))
	declared := profiletest.LoadMetadata(t)
	for name := range declared.Telemetry.Metrics {
		if name == "exporter_pprof_file_dropped_messages" { // nothing is known that both Encode and compact refuse
			continue
		}
		metric, err := f.telemetry.GetMetric("otelcol_" + name)
		if assert.NoError(t, err, name) {
			assert.NotEmpty(t, metric.Data.(metricdata.Sum[int64]).DataPoints, name)
		}
	}
}
