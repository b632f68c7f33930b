// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// A service whose profiler begins to write nanoseconds for ns, or bytes for By, has one type: its deltas are summed,
// its totals go on, and its samples stand for a time before and after. Selections may have either name.
func TestUnitsOfSeveralNames(t *testing.T) {
	engine := &fakeEngine{}
	memory, disk := New(testConfig()), open(t, diskConfig(t, t.TempDir()))
	defer func() { require.NoError(t, disk.Close()) }()
	for i, units := range [][3]string{{"ns", "By", "1"}, {"nanoseconds", "bytes", "count"}, {"ns", "By", "1"}} {
		at := noon.Add(time.Duration(i*20) * time.Second)
		one := func(typ, unit string, seconds, value int64) pprofile.Profiles {
			return profiletest.New().Resource("service.name", "shop").
				Profile(typ, unit).Time(uint64(at.UnixNano()), uint64(seconds)*1e9).Period(int64(10+i), "cpu", units[0]).
				Sample(profiletest.Value(value, "leaf")).Build()
		}
		for _, pd := range []pprofile.Profiles{
			one("delay", units[0], 10, 1), one("alloc_space", units[1], 0, int64(100+50*i)), one("samples", units[2], 10, 2),
		} {
			engine.add(pd)
			for _, s := range []*Store{memory, disk} {
				require.Equal(t, 1, s.Add(pd, at.Add(10*time.Second)).Profiles)
			}
		}
	}
	disk.Maintain(noon.Add(time.Hour))
	require.Positive(t, disk.Stats().DiskBlocks)
	source := answers.NewEngineSource(engine, time.Hour, time.Second, func() time.Time { return noon.Add(time.Minute) })
	for where, s := range map[string]*answers.Querier{"memory": memory.Querier, "disk": disk.Querier,
		"engine": source.Querier} {
		for _, c := range []struct {
			typ, canonical string
			want           int64
		}{
			{"delay", "delay/nanoseconds", 3}, {"delay/ns", "delay/nanoseconds", 3},
			{"delay/nanoseconds", "delay/nanoseconds", 3},
			{"alloc_space", "alloc_space/bytes", 100}, {"alloc_space/By", "alloc_space/bytes", 100},
			{"samples/1", "cpu/nanoseconds", 2 * (10 + 11 + 12)},
		} {
			g, err := s.FlameGraph(t.Context(), model.Selection{Service: "shop", Profile: "process_cpu", Type: c.typ}, 100)
			require.NoError(t, err, "%s: %s", where, c.typ)
			assert.Equal(t, c.canonical, g.Type.String(), "%s: %s", where, c.typ)
			assert.Equal(t, c.want, g.Total[0], "%s: %s", where, c.typ)
		}
	}
}
