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

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
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

// coarser returns the points as one for each step in which some start.
func (s naiveSeries) coarser(step int) naiveSeries {
	coarse := naiveSeries{}
	for id, points := range s {
		var sums []naivePoint
		for _, p := range points {
			if n := len(sums); n > 0 && sums[n-1].time/step == p.time/step {
				sums[n-1].value += p.value
				sums[n-1].seconds = max(sums[n-1].seconds, p.time+p.seconds-sums[n-1].time)
			} else {
				sums = append(sums, p)
			}
		}
		coarse[id] = sums
	}
	return coarse
}

// added returns what was added from one point of totals to the next.
func (s naiveSeries) added() naiveSeries {
	deltas := naiveSeries{}
	for id, points := range s {
		for i := 1; i < len(points); i++ {
			before, p := points[i-1], points[i]
			added := p.value - before.value
			if added < 0 {
				added = p.value
			}
			deltas[id] = append(deltas[id], naivePoint{before.time, p.time - before.time, added})
		}
	}
	return deltas
}

// A day that is coarser answers as if the deltas of each step had been one, and its sums and means over many steps are those of before,
// also of small states, whatever is coarser how often and whatever arrives late.
func TestCoarserDaysFollowTheRules(t *testing.T) {
	const minute = 60
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		cfg := diskConfig(t, t.TempDir())
		cfg.Disk.Downsampling = Downsampling{After: 24 * time.Hour, Step: 10 * time.Minute}
		s := open(t, cfg)
		deltas, cumulatives, gauges, small := naiveSeries{}, naiveSeries{}, naiveSeries{}, naiveSeries{}
		second := 0
		send := func(rounds int) {
			for range rounds {
				for pod := range 2 {
					id := strconv.Itoa(pod)
					if rnd.IntN(8) == 0 {
						continue
					}
					p := naivePoint{second + rnd.IntN(5), 1 + rnd.IntN(20), 1_000_000 * (1 + rnd.IntN(1000))}
					few := naivePoint{p.time, 0, rnd.IntN(3)}
					value := profiletest.Value(int64(p.value), "leaf")
					add(t, s, id, "cpu", "nanoseconds", p.time, p.seconds, value)
					add(t, s, id, "inuse_space", "bytes", p.time, 0, value)
					add(t, s, id, "goroutine", "count", p.time, 0, profiletest.Value(int64(few.value), "leaf"))
					add(t, s, id, "alloc_space", "bytes", p.time, 0, value)
					deltas[id], gauges[id], cumulatives[id] = append(deltas[id], p), append(gauges[id], p), append(cumulatives[id], p)
					small[id] = append(small[id], few)
				}
				second += 30
			}
		}
		send(150)
		s.Maintain(noon.Add(30 * time.Hour)) // a day
		before := s.Stats()
		s.Maintain(noon.Add(72 * time.Hour)) // a coarser one
		require.Less(t, s.Stats().Profiles, before.Profiles/3)
		require.Equal(t, int64(10*time.Minute), s.Blocks()[0].Step)
		s.Maintain(noon.Add(72 * time.Hour))
		require.NoError(t, s.Close())
		s = open(t, cfg)
		coarse := map[string]naiveSeries{"process_cpu/cpu": deltas.coarser(10 * minute), "memory/alloc_space": cumulatives.added().coarser(10 * minute)}
		for range 60 {
			from := rnd.IntN(second)
			until := from + 1 + rnd.IntN(second)
			for name, series := range coarse {
				profile, typ, _ := strings.Cut(name, "/")
				sel := Selection{Service: "shop", Profile: profile, Type: typ, From: at(from), Until: at(until)}
				if want := series.delta(from, until); want != 0 {
					require.InDelta(t, want, float64(sum(t, s, sel)), 2, "seed %d, %s, %d to %d", seed, name, from, until)
				}
			}
		}
		whole := Selection{Service: "shop", Profile: "memory", Type: "inuse_space", From: at(0), Until: at(2 * second)}
		require.InEpsilon(t, gauges.gauge(0, 2*second), float64(sum(t, s, whole)), 1e-6)
		whole.Profile, whole.Type = "goroutine", "goroutine"
		require.InDelta(t, small.gauge(0, 2*second), float64(sum(t, s, whole)), 1)
		require.NoError(t, s.Close())
	}
}

// What rounding leaves of a mean goes to the next step: the sum of a small state over its time is what it was.
func TestCoarserKeepsSmallStates(t *testing.T) {
	m := &coarser{step: int64(time.Minute), rest: map[rowKey]float64{}}
	var chunks []*chunk
	for i := range int64(600) {
		var cols columns
		cols.stacks, cols.attributes, cols.links = []int32{1}, []int32{0}, []int32{0}
		cols.timestamps, cols.values = []int64{0}, []int64{i % 5 / 4} // a fifth of the time
		c := &chunk{start: i * 10e9, end: (i + 2) * 10e9, values: kind.Gauge, samples: 1}
		c.data = cols.encode(0)
		chunks = append(chunks, c)
	}
	m.gauges(chunks)
	sum := int64(0)
	for _, c := range m.out {
		sum += c.total * c.interval() / 10e9
	}
	require.Len(t, m.out, 101, "the last one holds for its own interval")
	require.InDelta(t, 120, sum, 6)
}
