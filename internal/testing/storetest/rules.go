// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package storetest holds what is true for every store.Source: SumsFollowTheRules compares sums over random histories
// with naive ones, and Answers has what many queries return, so that two sources can be compared.
package storetest

import (
	"math"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// Noon is when histories begin.
var Noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// At returns a time of a history in Unix nanoseconds.
func At(seconds int) int64 { return Noon.Add(time.Duration(seconds) * time.Second).UnixNano() }

// Point is a profile with one value. Time and Seconds, its duration, are seconds.
type Point struct{ Time, Seconds, Value int }

// Naive has the points of each series in the order of their times.
type Naive map[string][]Point

// part returns how much of [start, end) lies in [from, until).
func part(start, end, from, until int) float64 {
	return float64(max(min(end, until)-max(start, from), 0))
}

// Delta returns the sum of what happened in a time.
func (s Naive) Delta(from, until int) (sum float64) {
	for _, points := range s {
		for _, p := range points {
			sum += float64(p.Value) * part(p.Time, p.Time+p.Seconds, from, until) / float64(p.Seconds)
		}
	}
	return sum
}

// Cumulative returns the sum of what was added to totals in a time.
func (s Naive) Cumulative(from, until int) (sum float64) {
	for _, points := range s {
		for i := 1; i < len(points); i++ {
			before, p := points[i-1], points[i]
			added := p.Value - before.Value
			if added < 0 {
				added = p.Value // the process has restarted
			}
			if p.Time > before.Time {
				sum += float64(added) * part(before.Time, p.Time, from, until) / float64(p.Time-before.Time)
			}
		}
	}
	return sum
}

// Gauge returns the mean over the time for which any state holds.
func (s Naive) Gauge(from, until int) float64 {
	sum, first, last := 0.0, math.MaxInt, math.MinInt
	for _, points := range s {
		known := 0 // the interval
		for i, p := range points {
			if i > 0 {
				if since := p.Time - points[i-1].Time; known == 0 || since <= 4*known {
					known = min(since, 3600)
				}
			}
			interval := max(known, 10)
			if known == 0 {
				interval = 60
			}
			end := p.Time + interval
			if i+1 < len(points) && points[i+1].Time <= p.Time+2*interval && points[i+1].Time < until {
				end = points[i+1].Time
			}
			if n := part(p.Time, end, from, until); n > 0 {
				sum += float64(p.Value) * n
				first, last = min(first, max(p.Time, from)), max(last, min(end, until))
			}
		}
	}
	if last <= first {
		return 0
	}
	return sum / float64(last-first)
}

// Kept is a source and what it gets. Its resolution is ten seconds, and it keeps days.
type Kept struct {
	answers.Source
	Add func(pd pprofile.Profiles, arrived time.Time)
	// Disturb, if it is not nil, may do to the source what it should survive. Finish, if it is not nil, is called before
	// queries.
	Disturb func(rnd *rand.Rand, now time.Time)
	Finish  func(now time.Time)
}

// One returns one profile of the service shop.
func One(instance, typ, unit string, from, seconds int, value int64,
	attributes ...profiletest.Attribute) (pd pprofile.Profiles, arrived time.Time) {
	start := Noon.Add(time.Duration(from) * time.Second)
	b := profiletest.New().Resource("service.name", "shop", "service.instance.id", instance).
		Profile(typ, unit).Time(uint64(start.UnixNano()), uint64(seconds)*1e9).Attributes(attributes...).
		Sample(profiletest.Value(value, "leaf"))
	return b.Build(), start.Add(time.Duration(seconds) * time.Second)
}

// Sum returns the total of a selection.
func Sum(t testing.TB, s answers.Source, sel model.Selection) float64 {
	t.Helper()
	g, err := answers.NewQuerier(s).FlameGraph(t.Context(), sel, 1000)
	require.NoError(t, err)
	return float64(g.Total[0])
}

// SumsFollowTheRules compares the sums of ranges with those of the rules in the package comment of store, over one
// random history.
func SumsFollowTheRules(t *testing.T, seed uint64, sources map[string]*Kept) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 7))
	deltas, cumulatives, gauges := Naive{}, Naive{}, Naive{}
	second, interval := 0, 15+rnd.IntN(900)
	// Of every other seed, the totals are known as such by what they state alone.
	total, stated := "memory/alloc_space", []profiletest.Attribute(nil)
	if seed%2 == 0 {
		total = "handles/handles"
		stated = []profiletest.Attribute{{Key: kind.TemporalityAttribute, Value: kind.Cumulative.String()}}
	}
	rounds, ranges := 120, 40
	if profiletest.IsRace { // everything takes minutes
		rounds, ranges = rounds/2, ranges/2
	}
	for range rounds {
		for pod := range 3 {
			id := strconv.Itoa(pod)
			if rnd.IntN(8) == 0 {
				continue // this pod was away
			}
			// What falls is more than an estimate.
			p := Point{second + rnd.IntN(interval/3), 1 + rnd.IntN(interval/2), 1_000_000 * (1 + rnd.IntN(60))}
			for _, s := range sources {
				s.Add(One(id, "cpu", "nanoseconds", p.Time, p.Seconds, int64(p.Value)))
				s.Add(One(id, "inuse_space", "bytes", p.Time, 0, int64(p.Value)))
				s.Add(One(id, path.Base(total), "bytes", p.Time, 0, int64(p.Value), stated...))
			}
			deltas[id], gauges[id], cumulatives[id] = append(deltas[id], p), append(gauges[id], p), append(cumulatives[id], p)
		}
		second += interval
		for _, s := range sources {
			if s.Disturb != nil {
				s.Disturb(rnd, Noon.Add(time.Duration(second)*time.Second))
			}
		}
	}
	for _, s := range sources {
		if s.Finish != nil {
			s.Finish(Noon.Add(72 * time.Hour))
		}
	}
	for range ranges {
		from := rnd.IntN(second)
		until := from + 1 + rnd.IntN(second)
		for name, want := range map[string]float64{
			"process_cpu/cpu": deltas.Delta(from, until), "memory/inuse_space": gauges.Gauge(from, until),
			total: cumulatives.Cumulative(from, until),
		} {
			profile, typ, _ := strings.Cut(name, "/")
			sel := model.Selection{Service: "shop", Profile: profile, Type: typ, From: At(from), Until: At(until)}
			for where, s := range sources {
				// Baselines are shown if nothing else is selected.
				if got := Sum(t, s, sel); want != 0 || name != total {
					require.InDelta(t, want, got, 2, "seed %d, %s in %s, %d to %d", seed, name, where, from, until)
				}
			}
		}
	}
}
