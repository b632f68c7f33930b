// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry is for what components report of themselves:
//   - Attributes, AddEach: metrics with attributes.
//   - Changes, Once: logs without repeats.
package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Attributes returns the attributes of a measurement (key, value, ...).
func Attributes(keyValues ...string) metric.MeasurementOption {
	set := make([]attribute.KeyValue, 0, len(keyValues)/2)
	for i := 0; i < len(keyValues); i += 2 {
		set = append(set, attribute.String(keyValues[i], keyValues[i+1]))
	}
	return metric.WithAttributeSet(attribute.NewSet(set...))
}

// AddEach adds counts, which has a number for each value of R, with that value as the attribute key.
func AddEach[R interface {
	~int
	fmt.Stringer
}](ctx context.Context, counter metric.Int64Counter, key string, counts []int) {
	for value, n := range counts {
		if n > 0 {
			counter.Add(ctx, int64(n), Attributes(key, R(value).String()))
		}
	}
}
