// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package collectortest

import (
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Sum adds up the points of a counter or gauge that have all the given attributes (key, value, …). It returns 0 if
// there is no such metric.
func Sum(t testing.TB, telemetry *componenttest.Telemetry, name string, attributes ...string) (sum int64) {
	t.Helper()
	m, err := telemetry.GetMetric(name)
	if err != nil {
		return 0
	}
	var points []metricdata.DataPoint[int64]
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		points = data.DataPoints
	case metricdata.Gauge[int64]:
		points = data.DataPoints
	default:
		t.Fatalf("%s is a %T", name, m.Data)
	}
	for _, point := range points {
		if hasAttributes(point.Attributes, attributes) {
			sum += point.Value
		}
	}
	return sum
}

func hasAttributes(set attribute.Set, attributes []string) bool {
	for i := 0; i < len(attributes); i += 2 {
		if value, ok := set.Value(attribute.Key(attributes[i])); !ok || value.AsString() != attributes[i+1] {
			return false
		}
	}
	return true
}
