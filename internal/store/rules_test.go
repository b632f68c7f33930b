// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/storetest"
)

func open(t *testing.T, cfg store.Config) *store.Store {
	t.Helper()
	s := store.New(cfg)
	require.NoError(t, s.Open())
	return s
}

// seeds returns how many histories a test has: fewer with the race detector, with which everything takes minutes.
func seeds() uint64 {
	if profiletest.IsRace {
		return 1
	}
	return 4
}

// coarser returns the points as one for each step in which some start and end, and those that end later.
func coarser(s storetest.Naive, step int) storetest.Naive {
	coarse := storetest.Naive{}
	for id, points := range s {
		var sums, longer []storetest.Point
		for _, p := range points {
			n := len(sums)
			switch {
			case p.Time+p.Seconds > (p.Time/step+1)*step:
				longer = append(longer, p)
			case n > 0 && sums[n-1].Time/step == p.Time/step:
				sums[n-1].Value += p.Value
				sums[n-1].Seconds = max(sums[n-1].Seconds, p.Time+p.Seconds-sums[n-1].Time)
			default:
				sums = append(sums, p)
			}
		}
		coarse[id] = append(sums, longer...)
	}
	return coarse
}

// added returns what was added from one point of totals to the next.
func added(s storetest.Naive) storetest.Naive {
	deltas := storetest.Naive{}
	for id, points := range s {
		for i := 1; i < len(points); i++ {
			before, p := points[i-1], points[i]
			added := p.Value - before.Value
			if added < 0 {
				added = p.Value
			}
			deltas[id] = append(deltas[id], storetest.Point{Time: before.Time, Seconds: p.Time - before.Time, Value: added})
		}
	}
	return deltas
}

// A day that is coarser answers as if the deltas of each step had been one, and its sums and means over many steps are
// those of before, also of small states, whatever is coarser how often and whatever arrives late.
func TestCoarserDaysFollowTheRules(t *testing.T) {
	const minute = 60
	for seed := range seeds() {
		rnd := rand.New(rand.NewPCG(seed, 11))
		cfg := store.DirectoryConfig(t, t.TempDir())
		cfg.Disk.Downsampling = store.Downsampling{After: 24 * time.Hour, Step: 10 * time.Minute}
		s := open(t, cfg)
		deltas, cumulatives, gauges, small := storetest.Naive{}, storetest.Naive{}, storetest.Naive{}, storetest.Naive{}
		second := 0
		send := func(rounds int) {
			for range rounds {
				for pod := range 2 {
					id := strconv.Itoa(pod)
					if rnd.IntN(8) == 0 {
						continue
					}
					p := storetest.Point{Time: second + rnd.IntN(5), Seconds: 1 + rnd.IntN(20),
						Value: 1_000_000 * (1 + rnd.IntN(60))} // what falls is more than an estimate
					few := storetest.Point{Time: p.Time, Value: rnd.IntN(3)}
					s.Add(storetest.One(id, "cpu", "nanoseconds", p.Time, p.Seconds, int64(p.Value)))
					s.Add(storetest.One(id, "inuse_space", "bytes", p.Time, 0, int64(p.Value)))
					s.Add(storetest.One(id, "goroutine", "count", p.Time, 0, int64(few.Value)))
					s.Add(storetest.One(id, "alloc_space", "bytes", p.Time, 0, int64(p.Value)))
					deltas[id], gauges[id], cumulatives[id] = append(deltas[id], p), append(gauges[id], p), append(cumulatives[id], p)
					small[id] = append(small[id], few)
				}
				second += 30
			}
		}
		send(150)
		s.Maintain(storetest.Noon.Add(30 * time.Hour)) // a day
		before := s.Stats()
		s.Maintain(storetest.Noon.Add(71 * time.Hour)) // a coarser one, an hour after the clock was set
		s.Maintain(storetest.Noon.Add(72 * time.Hour))
		require.Less(t, s.Stats().Profiles, before.Profiles/3)
		require.Equal(t, int64(10*time.Minute), s.Blocks()[0].Step)
		s.Maintain(storetest.Noon.Add(72 * time.Hour))
		require.NoError(t, s.Close())
		s = open(t, cfg)
		coarse := map[string]storetest.Naive{"process_cpu/cpu": coarser(deltas, 10*minute),
			"memory/alloc_space": coarser(added(cumulatives), 10*minute)}
		for range 60 {
			from := rnd.IntN(second)
			until := from + 1 + rnd.IntN(second)
			for name, series := range coarse {
				profile, typ, _ := strings.Cut(name, "/")
				sel := model.Selection{Service: "shop", Profile: profile, Type: typ, From: storetest.At(from),
					Until: storetest.At(until)}
				if want := series.Delta(from, until); want != 0 {
					require.InDelta(t, want, storetest.Sum(t, s, sel), 2, "seed %d, %s, %d to %d", seed, name, from, until)
				}
			}
		}
		whole := model.Selection{Service: "shop", Profile: "memory", Type: "inuse_space", From: storetest.At(0),
			Until: storetest.At(2 * second)}
		require.InEpsilon(t, gauges.Gauge(0, 2*second), storetest.Sum(t, s, whole), 1e-6)
		whole.Profile, whole.Type = "goroutine", "goroutine"
		require.InDelta(t, small.Gauge(0, 2*second), storetest.Sum(t, s, whole), 1)
		require.NoError(t, s.Close())
	}
}
