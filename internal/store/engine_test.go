// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// fakeEngine has one sample type. It takes the whole of each profile that a query selects.
type fakeEngine struct {
	typ    EngineType
	series []fakeSeries
	asked  []string
}

type fakeSeries struct {
	id                EngineID
	resource, profile []model.Attribute
	samples           []fakeSample
}

type fakeSample struct {
	value      int64
	attributes map[string]string
}

func (e *fakeEngine) Types(_ context.Context, _ string, _, _ int64, use func(*EngineType) error) error {
	return use(&e.typ)
}

func (e *fakeEngine) Series(_ context.Context, _ string, _, _ int64,
	use func(EngineID, []model.Attribute, []model.Attribute) error,
) error {
	for i := range e.series {
		if err := use(e.series[i].id, e.series[i].resource, e.series[i].profile); err != nil {
			return err
		}
	}
	return nil
}

func (e *fakeEngine) Profiles(_ context.Context, _ []EngineType, _, _ int64, use func(*EngineProfile) error) error {
	for _, s := range e.series {
		if len(s.samples) == 0 {
			continue
		}
		p := &EngineProfile{Series: s.id, Time: e.typ.From, Duration: e.typ.Duration, Samples: len(s.samples)}
		for _, sample := range s.samples {
			if p.IsTimed = e.typ.IsTimed; p.IsTimed {
				p.First, p.Last = p.Time+1, p.Time+1
			}
			p.Total, p.HasAttributes = p.Total+sample.value, p.HasAttributes || len(sample.attributes) > 0
		}
		if err := use(p); err != nil {
			return err
		}
	}
	return nil
}

func (e *fakeEngine) HasAttribute(_ context.Context, _ []EngineType, from, until int64, key string,
	values []string,
) (bool, error) {
	e.asked = append(e.asked, key)
	for _, s := range e.series {
		for _, sample := range s.samples {
			value, has := sample.attributes[key]
			if has && from <= e.typ.From && e.typ.From < until && (values == nil || slices.Contains(values, value)) {
				return true, nil
			}
		}
	}
	return false, nil
}

func (e *fakeEngine) Rows(_ context.Context, q *EngineQuery, use func(*EngineRow) error) error {
	for _, s := range e.series {
		chosen := EngineChosen{Series: s.id}
		if i := slices.IndexFunc(q.Chosen, func(c EngineChosen) bool { return c.Series == s.id }); i >= 0 {
			chosen = q.Chosen[i]
		} else if len(q.Chosen) > 0 {
			continue
		}
		for _, sample := range s.samples {
			isWanted := true
			for i, f := range q.Filters {
				has := slices.Contains(f.Values, sample.attributes[f.Key])
				isWanted = isWanted && (has || chosen.Required&(1<<i) == 0)
			}
			row := &EngineRow{Group: chosen.Group, Samples: 1, Value: sample.value}
			if name, has := sample.attributes[q.GroupBy]; has && chosen.Group < 0 {
				row.Group, row.GroupName = OwnGroup, name
			}
			if q.Want.Series || q.Want.Profiles {
				row.Series = s.id
			}
			if chosen.Into != 0 {
				row.Into = chosen.Into
			}
			if !isWanted {
				continue
			}
			if err := use(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *fakeEngine) Stacks(_ context.Context, _ string, _, _ int64, ids []EngineID,
	use func(*EngineStack) error,
) error {
	for _, id := range ids {
		if err := use(&EngineStack{ID: id, Frames: []EngineFrame{{Function: "main"}}}); err != nil {
			return err
		}
	}
	return nil
}

// The attributes of samples, profiles and resources decide in an engine as they do in a store, and it is asked for
// those of samples only where a resource has the key, too.
func TestAttributesOfSamplesAndResourcesInEngine(t *testing.T) {
	region := func(value string) []model.Attribute { return []model.Attribute{{Key: "region", Value: value}} }
	sample := func(value int64, key, attribute string) fakeSample {
		return fakeSample{value, map[string]string{key: attribute}}
	}
	engine := func(series ...fakeSeries) *fakeEngine {
		cpu := model.SampleType{Type: "cpu", Unit: "nanoseconds"}
		e := &fakeEngine{series: series, typ: EngineType{
			Service: "shop", Type: cpu, PeriodType: cpu, From: noon.UnixNano(),
			Until: noon.Add(time.Second).UnixNano(), Duration: 1e9, Samples: 1, Instances: 1,
		}}
		for i := range e.series {
			e.series[i].id = EngineID{byte(i + 1)}
		}
		return e
	}
	without := fakeSeries{resource: region("mars")} // of another type of the service
	plain := fakeSample{value: 10}
	for name, c := range map[string]struct {
		engine *fakeEngine
		groups map[string]int64
		// byValue are the sums by the value that samples must have.
		byValue map[string]int64
		asked   bool
	}{
		"resources alone": {
			engine(fakeSeries{resource: region("eu"), samples: []fakeSample{plain}},
				fakeSeries{resource: region("us"), samples: []fakeSample{plain}}, without),
			map[string]int64{"eu": 10, "us": 10}, map[string]int64{"eu": 10, "us": 10}, false,
		},
		"samples with another attribute": {
			engine(fakeSeries{resource: region("eu"), samples: []fakeSample{plain, sample(1, "thread", "a")}}, without),
			map[string]int64{"eu": 11}, map[string]int64{"eu": 11}, true,
		},
		"samples with their own": {
			engine(fakeSeries{resource: region("eu"), samples: []fakeSample{plain, sample(1, "region", "us")}},
				fakeSeries{resource: region("asia"), samples: []fakeSample{plain}},
				fakeSeries{samples: []fakeSample{{value: 3}}}, without),
			map[string]int64{"eu": 10, "us": 1, "asia": 10, NoGroup: 3},
			map[string]int64{"eu": 11, "us": 1, "asia": 10}, true,
		},
		"a profile decides": {
			engine(fakeSeries{
				resource: region("eu"), profile: region("asia"),
				samples: []fakeSample{plain, sample(1, "region", "us")},
			}),
			map[string]int64{"asia": 11}, map[string]int64{"asia": 11}, false,
		},
		"samples alone": {
			engine(fakeSeries{samples: []fakeSample{plain, sample(1, "region", "us")}}),
			map[string]int64{NoGroup: 10, "us": 1}, map[string]int64{"us": 1}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewEngineSource(c.engine, time.Hour, time.Second, func() time.Time { return noon.Add(time.Minute) })
			sel := model.Selection{Service: "shop", Profile: "process_cpu", GroupBy: "region"}
			g, err := s.FlameGraph(t.Context(), sel, 100)
			require.NoError(t, err)
			groups := map[string]int64{}
			for i, parent := range g.Parent {
				if i > 0 && parent == 0 {
					groups[g.Frames[g.Frame[i]].Name[len("region="):]] += g.Total[i]
				}
			}
			require.Equal(t, c.groups, groups)
			line, err := s.Timeline(t.Context(), sel, 10, noon.Add(time.Minute))
			require.NoError(t, err)
			var names []string
			for _, group := range line.Groups {
				names = append(names, group.Name)
			}
			require.ElementsMatch(t, slices.Collect(maps.Keys(c.groups)), names)
			require.Equal(t, c.asked, len(c.engine.asked) > 0)
			sel.GroupBy = ""
			for value, want := range c.byValue {
				sel.Attributes = region(value)
				g, err := s.FlameGraph(t.Context(), sel, 100)
				require.NoError(t, err)
				require.Equal(t, want, g.Total[0], value)
			}
		})
	}
}

// What a profile states about its values decides in an engine as it does in a store, and observations with times are
// events.
func TestStatedValuesInEngine(t *testing.T) {
	for name, c := range map[string]struct {
		typ, temporality string
		isTimed          bool
		want             kind.Values
	}{
		"a known total":      {"alloc_space", "", false, kind.Cumulative},
		"a stated delta":     {"alloc_space", "delta", false, kind.Delta},
		"a stated state":     {"alloc_space", "gauge", false, kind.Gauge},
		"a stated total":     {"things", "cumulative", false, kind.Cumulative},
		"an unknown word":    {"things", "sum", false, kind.Gauge},
		"events without end": {"alloc_space", "", true, kind.Delta},
	} {
		t.Run(name, func(t *testing.T) {
			e := &fakeEngine{
				typ: EngineType{
					Service: "shop", Stated: "memory", Type: model.SampleType{Type: c.typ, Unit: "count"}, From: noon.UnixNano(),
					Until:   noon.UnixNano(),
					Samples: 1, Instances: 1, IsTimed: c.isTimed, Temporality: c.temporality,
				},
				series: []fakeSeries{{id: EngineID{1}, samples: []fakeSample{{value: 10}}}},
			}
			if c.temporality != "" {
				e.series[0].profile = []model.Attribute{{Key: kind.TemporalityAttribute, Value: c.temporality}}
			}
			s := NewEngineSource(e, time.Hour, time.Second, func() time.Time { return noon.Add(time.Minute) })
			list, err := s.Catalog(t.Context(), "shop", &size.Meter{Context: t.Context()})
			require.NoError(t, err)
			require.Equal(t, model.Shown(c.want), list[0].Values)
			_, block, err := s.selected(t.Context(),
				s.query(t.Context(), model.Selection{Service: "shop", Profile: "memory"}, Want{}))
			require.NoError(t, err)
			require.Equal(t, c.want, block.series[len(block.series)-1].chunks[0].Values)
		})
	}
}
