// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// allQueries are all queries that have a Meter, of one profile.
func allQueries(s *Store, sel model.Selection) map[string]func(ctx context.Context, m *size.Meter) (any, error) {
	sel.Timestamps = true
	grouped := sel
	grouped.GroupBy = "key"
	run := func(sel model.Selection, query func(context.Context, model.Selection) (any, error)) func(context.Context,
		*size.Meter) (any, error) {
		return func(ctx context.Context, m *size.Meter) (any, error) {
			sel.Meter = m
			return query(ctx, sel)
		}
	}
	return map[string]func(context.Context, *size.Meter) (any, error){
		"flame graph": run(sel, func(ctx context.Context, sel model.Selection) (any, error) {
			return s.FlameGraph(ctx, sel, 500_000)
		}),
		"groups": run(grouped, func(ctx context.Context, sel model.Selection) (any, error) {
			return s.FlameGraph(ctx, sel, 500_000)
		}),
		"diff": run(sel, func(ctx context.Context, sel model.Selection) (any, error) {
			return s.Diff(ctx, sel, sel, 500_000)
		}),
		"merge": run(sel, func(ctx context.Context, sel model.Selection) (any, error) { return s.Merge(ctx, sel) }),
		"timeline": run(grouped, func(ctx context.Context, sel model.Selection) (any, error) {
			return s.Timeline(ctx, sel, 10_000, noon)
		}),
		"attributes": run(sel, func(ctx context.Context, sel model.Selection) (any, error) {
			return s.Attributes(ctx, sel, 10_000)
		}),
		"heat map": run(sel, func(ctx context.Context, sel model.Selection) (any, error) {
			return s.HeatMap(ctx, sel, 1200, 200)
		}),
		"events": run(sel, func(ctx context.Context, sel model.Selection) (any, error) { return s.Events(ctx, sel, 20_000) }),
	}
}

// What a query takes, it reserves before: of the worst messages, and of a store in which hardly any two samples share a
// function.
func TestQueriesReserveTheirMemory(t *testing.T) {
	profiletest.SkipLarge(t)
	stores := map[string]func(t *testing.T) *Store{"distinct functions": func(t *testing.T) *Store { return fullStore(t, 16<<20) }}
	for name, wire := range worst.Profiles.All(512 << 10) {
		stores[name] = func(t *testing.T) *Store {
			pd := profiletest.Unmarshal(t, wire)
			cfg := testConfig()
			cfg.MaxSeries = 0
			s := New(cfg)
			s.Add(pd, noon)
			return s
		}
	}
	for name, newStore := range stores {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			first := s.profiles("")[0]
			for name, query := range allQueries(s, model.Selection{Service: first.Service, Profile: first.Profile}) {
				t.Run(name, func(t *testing.T) {
					var result any
					// A small heap, of which most is garbage, is collected at times only.
					profiletest.RequireReserved(t, profiletest.Bound{}, 8<<20, func(reserve func(int) error) {
						result, _ = query(t.Context(), &size.Meter{Context: t.Context(), Reserve: reserve})
					})
					_ = result
				})
			}
		})
	}
}

// fullStore returns a store of so many bytes, in which hardly any two samples share a function.
func fullStore(t *testing.T, maxBytes int) *Store {
	t.Helper()
	cfg := testConfig()
	cfg.MaxBytes = maxBytes
	s := New(cfg)
	for round := 0; s.Stats().Evicted[model.EvictedBytes] == 0; round++ {
		var samples []profiletest.Sample
		for i := range 2000 {
			samples = append(samples, profiletest.Value(int64(i+1), fmt.Sprintf("f%d.%d", round, i), fmt.Sprint("g", i%100),
				"main").
				With(profiletest.Attr("key", fmt.Sprint(i%33))))
		}
		add(t, s, "a", "cpu", "nanoseconds", round, 1, samples...)
	}
	return s
}

// A query ends when there is no more memory, and when its context does, wherever it is.
func TestQueriesEnd(t *testing.T) {
	s := New(testConfig())
	var samples []profiletest.Sample
	for i := range 3000 {
		samples = append(samples, profiletest.Observed([]uint64{uint64(at(i % 60))}, fmt.Sprint("f", i), "main").
			With(profiletest.Attr("key", fmt.Sprint(i))))
	}
	add(t, s, "a", "cpu", "nanoseconds", 0, 60, samples...)
	errNone := errors.New("no memory")
	for name, query := range allQueries(s, model.Selection{Service: "shop", Profile: "process_cpu"}) {
		t.Run(name, func(t *testing.T) {
			steps := 0
			count := func(int) error { steps++; return nil }
			_, err := query(t.Context(), &size.Meter{Context: t.Context(), Reserve: count})
			require.NoError(t, err)
			require.Positive(t, steps)
			for last := range steps {
				left := last
				_, err := query(t.Context(), &size.Meter{Context: t.Context(), Reserve: func(int) error {
					if left--; left < 0 {
						return errNone
					}
					return nil
				}})
				require.ErrorIs(t, err, errNone, "after %d of %d", last, steps)
				ctx, cancel := context.WithCancel(t.Context())
				left = last
				_, err = query(ctx, &size.Meter{Context: ctx, Reserve: func(int) error {
					if left--; left < 0 {
						cancel()
					}
					return nil
				}})
				cancel()
				if last < steps-1 {
					assert.ErrorIs(t, err, context.Canceled, "after %d of %d", last, steps)
				}
			}
			late, cancel := context.WithDeadline(t.Context(), time.Now())
			defer cancel()
			_, err = query(late, nil)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}
