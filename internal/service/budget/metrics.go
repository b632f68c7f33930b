// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"cmp"
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Metrics has the names of the metrics of the process's budget, and what each is. Both have the attribute `part`:
// `bodies` or `profiles`.
var Metrics = map[string]string{
	"otelcol_process_budget_used": "Bytes of the process's memory budget that payloads hold.",
	"otelcol_process_budget_size": "Bytes of the process's memory budget.",
}

// Parts are the values of the attribute `part`.
var Parts = []string{"bodies", "profiles"}

// watching is the registration of the metrics: one for the process, although each receiver that starts asks for it.
var watching struct {
	sync.Mutex
	users        int
	registration metric.Registration
}

// Watch reports the process's budget as metrics until the returned function is called by each caller.
func Watch(set component.TelemetrySettings) (stop func() error, err error) {
	watching.Lock()
	defer watching.Unlock()
	if watching.users == 0 {
		if watching.registration, err = register(
			set.MeterProvider.Meter("github.com/otelcol-profiles/otelcol-profiles/internal/service/budget")); err != nil {
			return nil, err
		}
	}
	watching.users++
	return sync.OnceValue(func() error {
		watching.Lock()
		defer watching.Unlock()
		if watching.users--; watching.users > 0 {
			return nil
		}
		return watching.registration.Unregister()
	}), nil
}

func register(meter metric.Meter) (metric.Registration, error) {
	gauge := func(name string) (metric.Int64ObservableGauge, error) {
		return meter.Int64ObservableGauge(name, metric.WithDescription(Metrics[name]), metric.WithUnit("By"))
	}
	used, usedErr := gauge("otelcol_process_budget_used")
	size, sizeErr := gauge("otelcol_process_budget_size")
	if err := cmp.Or(usedErr, sizeErr); err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		budget := Process()
		for i, l := range []*lane{budget.bodies, budget.profiles} {
			part := metric.WithAttributes(attribute.String("part", Parts[i]))
			o.ObserveInt64(used, l.inUse.Load(), part)
			o.ObserveInt64(size, l.maxBytes, part)
		}
		return nil
	}, used, size)
}
