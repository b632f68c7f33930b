// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// A minute of work, then an outage of three hours, in which the process hardly does anything: after the day has become
// coarser, the minute still has its work, and the outage hardly any.
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
					b.Profile("cpu", "nanoseconds").Time(uint64(second(from).UnixNano()), uint64(until-from)*1e9).
						Sample(profiletest.Value(value, "leaf"))
				} else { // totals are made deltas since the profile before
					total += value
					b.Profile("alloc_space", "bytes").Time(uint64(second(until).UnixNano()), 0).
						Sample(profiletest.Value(total, "leaf"))
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
			sel := model.Selection{Service: "shop", Profile: profile, From: second(begun).UnixNano(),
				Until: second(begun + 60).UnixNano()}
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
