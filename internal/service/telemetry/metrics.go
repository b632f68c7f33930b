// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package telemetry is for what components report of themselves:
//   - Attributes, AddEach, Each, Observe: metrics with attributes.
//   - Changes, Once, Limits: logs without repeats.
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

// enum is a list of values with names.
type enum interface {
	~int | ~int8 | ~uint8
	fmt.Stringer
}

// AddEach adds counts, which has a number for each value of R, with that value as the attribute key.
func AddEach[R enum](ctx context.Context, counter metric.Int64Counter, key string, counts []int) {
	for value, n := range counts {
		if n > 0 {
			counter.Add(ctx, int64(n), Attributes(key, R(value).String()))
		}
	}
}

// Each has the attributes of a measurement for each value of an enumeration, which are made once.
type Each []metric.MeasurementOption

// EachOf returns those of the first n values of R: the value as the attribute key, and further ones (key, value, ...).
func EachOf[R enum](n int, key string, more ...string) Each {
	each := make(Each, n)
	for i := range each {
		each[i] = Attributes(append([]string{key, R(i).String()}, more...)...)
	}
	return each
}

// Add adds counts, which has a number for each value.
func (e Each) Add(ctx context.Context, counter metric.Int64Counter, counts []int) {
	for i, n := range counts {
		if n != 0 {
			counter.Add(ctx, int64(n), e[i])
		}
	}
}

// Observe returns the callback of a gauge, or of a counter that is observed.
func Observe[N int | int64](value func() N, with ...metric.ObserveOption) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(value()), with...)
		return nil
	}
}
