// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// naivePoint is a profile with one value. Times are seconds.
type naivePoint struct{ time, seconds, value int }

// naiveSeries has the points of each series in the order of their times.
type naiveSeries map[string][]naivePoint

// part returns how much of [start, end) lies in [from, until).
func part(start, end, from, until int) float64 {
	return float64(max(min(end, until)-max(start, from), 0))
}

func (s naiveSeries) delta(from, until int) (sum float64) {
	for _, points := range s {
		for _, p := range points {
			sum += float64(p.value) * part(p.time, p.time+p.seconds, from, until) / float64(p.seconds)
		}
	}
	return sum
}

func (s naiveSeries) cumulative(from, until int) (sum float64) {
	for _, points := range s {
		for i := 1; i < len(points); i++ {
			before, p := points[i-1], points[i]
			added := p.value - before.value
			if added < 0 {
				added = p.value // the process has restarted
			}
			if p.time > before.time {
				sum += float64(added) * part(before.time, p.time, from, until) / float64(p.time-before.time)
			}
		}
	}
	return sum
}

// gauge is the mean over the time for which any gauge holds.
func (s naiveSeries) gauge(from, until int) float64 {
	sum, first, last := 0.0, math.MaxInt, math.MinInt
	for _, points := range s {
		known := 0 // the interval
		for i, p := range points {
			if i > 0 {
				if since := p.time - points[i-1].time; known == 0 || since <= 4*known {
					known = min(since, 3600)
				}
			}
			interval := max(known, 10)
			if known == 0 {
				interval = 60
			}
			end := p.time + interval
			if i+1 < len(points) && points[i+1].time <= p.time+2*interval && points[i+1].time < until {
				end = points[i+1].time
			}
			if n := part(p.time, end, from, until); n > 0 {
				sum += float64(p.value) * n
				first, last = min(first, max(p.time, from)), max(last, min(end, until))
			}
		}
	}
	if last <= first {
		return 0
	}
	return sum / float64(last-first)
}

// The sums of a range are those of the rules in the package comment, whatever is asked for, and whether profiles are in memory, were there
// when the process was killed, or are in blocks of hours and days.
func TestSumsFollowTheRules(t *testing.T) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		inMemory := testConfig()
		inMemory.Window = 100 * time.Hour
		memory, disk := New(inMemory), open(t, diskConfig(t, t.TempDir()))
		deltas, cumulatives, gauges := naiveSeries{}, naiveSeries{}, naiveSeries{}
		second, interval := 0, 15+rnd.IntN(900)
		for range 120 {
			for pod := range 3 {
				id := strconv.Itoa(pod)
				if rnd.IntN(8) == 0 {
					continue // this pod was away
				}
				p := naivePoint{second + rnd.IntN(interval/3), 1 + rnd.IntN(interval/2), 1_000_000 * (1 + rnd.IntN(1000))}
				for _, s := range []*Store{memory, disk} {
					value := profiletest.Value(int64(p.value), "leaf")
					add(t, s, id, "cpu", "nanoseconds", p.time, p.seconds, value)
					add(t, s, id, "inuse_space", "bytes", p.time, 0, value)
					add(t, s, id, "alloc_space", "bytes", p.time, 0, value)
				}
				deltas[id], gauges[id], cumulatives[id] = append(deltas[id], p), append(gauges[id], p), append(cumulatives[id], p)
			}
			second += interval
			now := noon.Add(time.Duration(second) * time.Second)
			switch rnd.IntN(12) {
			case 0:
				disk.Maintain(now)
			case 1: // as if it had been killed
				require.NoError(t, disk.disk.lock.Release())
				disk = open(t, disk.cfg)
			}
		}
		disk.Maintain(noon.Add(72 * time.Hour))
		for range 40 {
			from := rnd.IntN(second)
			until := from + 1 + rnd.IntN(second)
			for name, want := range map[string]float64{
				"process_cpu/cpu": deltas.delta(from, until), "memory/inuse_space": gauges.gauge(from, until),
				"memory/alloc_space": cumulatives.cumulative(from, until),
			} {
				profile, typ, _ := strings.Cut(name, "/")
				sel := Selection{Service: "shop", Profile: profile, Type: typ, From: at(from), Until: at(until)}
				for where, s := range map[string]*Store{"memory": memory, "disk": disk} {
					// Baselines are shown if nothing else is selected.
					if got := float64(sum(t, s, sel)); want != 0 || typ != "alloc_space" {
						require.InDelta(t, want, got, 2, "seed %d, %s in %s, %d to %d", seed, name, where, from, until)
					}
				}
			}
		}
		require.NoError(t, disk.Close())
	}
}
