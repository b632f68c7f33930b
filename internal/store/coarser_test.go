// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

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

// A minute of work, then an outage of three hours, in which the process hardly does anything: after the day has become coarser, the minute
// still has its work, and the outage hardly any.
func TestCoarserAcrossAnOutage(t *testing.T) {
	for _, c := range []struct {
		typ    string
		outage int
	}{{"cpu", 10}, {"cpu", 3 * 3600}, {"alloc_space", 10}, {"alloc_space", 3 * 3600}} {
		typ := c.typ
		t.Run(fmt.Sprint(typ, ", an outage of ", c.outage, " s"), func(t *testing.T) {
			cfg := diskConfig(t, t.TempDir())
			cfg.Disk.Downsampling = Downsampling{After: time.Hour, Step: time.Minute}
			s := open(t, cfg)
			day := noon.Truncate(24 * time.Hour)
			second := func(n int) time.Time { return day.Add(time.Duration(n) * time.Second) }
			total := int64(1000)
			push := func(from, until int, value int64) {
				b := profiletest.New().Resource("service.name", "shop")
				if typ == "cpu" { // a delta states its time
					b.Profile("cpu", "nanoseconds").Time(uint64(second(from).UnixNano()), uint64(until-from)*1e9).Sample(profiletest.Value(value, "leaf"))
				} else { // totals are made deltas since the profile before
					total += value
					b.Profile("alloc_space", "bytes").Time(uint64(second(until).UnixNano()), 0).Sample(profiletest.Value(total, "leaf"))
				}
				require.Equal(t, 1, s.Add(b.Build(), second(until)).Profiles)
			}
			begun, outage := 3600, c.outage
			if typ != "cpu" {
				push(begun-10, begun, 0) // the baseline
			}
			for i := 0; i < 50; i += 10 {
				push(begun+i, begun+i+10, 1000)
			}
			push(begun+50, begun+50+outage, 60) // the first one after it
			profile := map[string]string{"cpu": "process_cpu", "alloc_space": "memory"}[typ]
			sel := Selection{Service: "shop", Profile: profile, From: second(begun).UnixNano(), Until: second(begun + 60).UnixNano()}
			idle := sel
			idle.From, idle.Until = second(begun+3600).UnixNano(), second(begun+7200).UnixNano()
			s.Maintain(day.Add(25*time.Hour + time.Minute))
			fine, fineIdle := sum(t, s, sel), sum(t, s, idle)
			s.Maintain(day.Add(27 * time.Hour))
			require.NotZero(t, s.Stats().CoarseStep)
			assert.InEpsilon(t, fine, sum(t, s, sel), 0.02, "the minute, which is a whole step")
			assert.InDelta(t, fineIdle, sum(t, s, idle), 40, "an hour of the outage, which is sixty whole steps")
			require.NoError(t, s.Close())
		})
	}
}
