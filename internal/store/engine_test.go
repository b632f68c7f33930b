// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"crypto/md5"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// fakeEngine is an Engine of rows, which it goes over for each query.
type fakeEngine struct {
	rows   []fakeRow
	stacks map[answers.EngineID][]string
	asked  []string
}

// fakeRow is a sample.
type fakeRow struct {
	typ                    answers.EngineType
	series, stack          answers.EngineID
	resource, profile, own map[string]string
	trace, span            string
	time, duration, period int64
	values, timestamps     []int64
}

// total returns the sum and the number of a row's observations.
func (r *fakeRow) total() (sum, samples int64) {
	for _, v := range r.values {
		sum += v
	}
	return sum, int64(max(len(r.timestamps), 1))
}

func hashOf(values ...any) answers.EngineID {
	return answers.EngineID(md5.Sum(fmt.Append(nil, values...)))
}

// add adds profiles as the table has them.
func (e *fakeEngine) add(pd pprofile.Profiles) {
	d := pd.Dictionary()
	str := func(i int32) string { return d.StringTable().At(int(i)) }
	typeOf := func(v pprofile.ValueType) model.SampleType {
		return model.SampleType{Type: str(v.TypeStrindex()), Unit: str(v.UnitStrindex())}
	}
	attributes := func(from interface{ AttributeIndices() pcommon.Int32Slice }) map[string]string {
		list := map[string]string{}
		for _, i := range from.AttributeIndices().All() {
			a := d.AttributeTable().At(int(i))
			list[str(a.KeyStrindex())] = a.Value().AsString()
		}
		return list
	}
	for _, rp := range pd.ResourceProfiles().All() {
		resource := map[string]string{}
		for key, value := range rp.Resource().Attributes().All() {
			resource[key] = value.AsString()
		}
		for _, p := range rp.ScopeProfiles().At(0).Profiles().All() {
			profile := attributes(p)
			typ := answers.EngineType{
				Service: resource["service.name"], Type: typeOf(p.SampleType()), PeriodType: typeOf(p.PeriodType()),
				Stated: profile[kind.NameAttribute], Temporality: profile[kind.TemporalityAttribute],
			}
			for _, s := range p.Samples().All() {
				row := fakeRow{
					typ: typ, series: hashOf(resource, profile), resource: resource, profile: profile, own: attributes(s),
					time: int64(p.Time()), duration: int64(p.DurationNano()), period: p.Period(), values: s.Values().AsRaw(),
				}
				for _, t := range s.TimestampsUnixNano().All() {
					row.timestamps = append(row.timestamps, int64(t))
				}
				for len(row.values) < len(row.timestamps) {
					row.values = append(row.values, 1)
				}
				if s.LinkIndex() != 0 {
					link := d.LinkTable().At(int(s.LinkIndex()))
					row.trace, row.span = link.TraceID().String(), link.SpanID().String()
				}
				var frames []string
				for _, l := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
					line := d.LocationTable().At(int(l)).Lines().At(0)
					frames = append(frames, str(d.FunctionTable().At(int(line.FunctionIndex())).NameStrindex()))
				}
				row.stack = hashOf(frames)
				if e.stacks == nil {
					e.stacks = map[answers.EngineID][]string{}
				}
				e.stacks[row.stack] = frames
				e.rows = append(e.rows, row)
			}
		}
	}
}

func (e *fakeEngine) Types(_ context.Context, service string, _, _ int64, use func(*answers.EngineType) error) error {
	found := map[answers.EngineType]*answers.EngineType{}
	for i := range e.rows {
		r := &e.rows[i]
		if service != "" && service != r.typ.Service {
			continue
		}
		t := found[r.typ]
		if t == nil {
			t = new(r.typ)
			t.From, found[r.typ] = r.time, t
		}
		_, samples := r.total()
		t.From, t.Until = min(t.From, r.time), max(t.Until, r.time+r.duration)
		t.Duration, t.Samples, t.Instances = max(t.Duration, r.duration), t.Samples+int(samples), 1
		t.IsTimed = t.IsTimed || r.timestamps != nil
	}
	for _, t := range found {
		if err := use(t); err != nil {
			return err
		}
	}
	return nil
}

func (e *fakeEngine) Series(_ context.Context, service string, _, _ int64,
	use func(answers.EngineID, []model.Attribute, []model.Attribute) error,
) error {
	for i := range e.rows {
		if r := &e.rows[i]; r.typ.Service == service {
			if err := use(r.series, attributesOf(r.resource), attributesOf(r.profile)); err != nil {
				return err
			}
		}
	}
	return nil
}

func attributesOf(m map[string]string) (list []model.Attribute) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, model.Attribute{Key: key, Value: m[key]})
	}
	return list
}

// is reports whether a row is of one of some types.
func (r *fakeRow) is(types []answers.EngineType) int {
	return slices.IndexFunc(types, func(t answers.EngineType) bool {
		return t.Service == r.typ.Service && t.Stated == r.typ.Stated && t.Type == r.typ.Type &&
			t.PeriodType == r.typ.PeriodType
	})
}

func (e *fakeEngine) Profiles(_ context.Context, types []answers.EngineType, from, until int64,
	use func(*answers.EngineProfile) error,
) error {
	type key struct {
		time, typ int64
		series    answers.EngineID
	}
	found := map[key]*answers.EngineProfile{}
	for i := range e.rows {
		r := &e.rows[i]
		k := key{r.time, int64(r.is(types)), r.series}
		if k.typ < 0 || r.time < from || until != 0 && r.time >= until {
			continue
		}
		p := found[k]
		if p == nil {
			p = &answers.EngineProfile{Type: int(k.typ), Series: r.series, Time: r.time, Duration: r.duration, Period: r.period}
			found[k] = p
		}
		sum, samples := r.total()
		p.Total, p.Samples = p.Total+sum, p.Samples+int(samples)
		p.HasAttributes, p.HasLinks = p.HasAttributes || len(r.own) > 0, p.HasLinks || r.trace != ""
		for _, t := range r.timestamps {
			if !p.IsTimed {
				p.First = t
			}
			p.IsTimed, p.First, p.Last = true, min(p.First, t), max(p.Last, t)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(found), func(a, b key) int { return cmp.Compare(a.time, b.time) }) {
		if err := use(found[k]); err != nil {
			return err
		}
	}
	return nil
}

func (e *fakeEngine) HasAttribute(_ context.Context, types []answers.EngineType, from, until int64, key string,
	values []string,
) (bool, error) {
	e.asked = append(e.asked, key)
	return slices.ContainsFunc(e.rows, func(r fakeRow) bool {
		value, has := r.own[key]
		return has && r.is(types) >= 0 && from <= r.time && (until == 0 || r.time < until) &&
			(values == nil || slices.Contains(values, value))
	}), nil
}

func (e *fakeEngine) Rows(_ context.Context, q *answers.EngineQuery, use func(*answers.EngineRow) error) error {
	for i := range e.rows {
		r := &e.rows[i]
		at := slices.IndexFunc(q.Spans, func(s answers.EngineSpan) bool {
			return s.Series == r.series && s.From <= r.time && r.time <= s.Until
		})
		if at < 0 || r.is(q.Types) < 0 || r.time < q.From || r.time > q.Until {
			continue
		}
		span := &q.Spans[at]
		out := &answers.EngineRow{Sum: span.Sum, Stack: r.stack, Trace: r.trace, Span: r.span, Time: r.time}
		for _, a := range attributesOf(r.own) {
			if q.Attributes || slices.ContainsFunc(q.Keys, func(k model.AttributeKey) bool {
				return k.Key == a.Key && (k.Values == nil || slices.Contains(k.Values, a.Value))
			}) {
				out.Attributes = append(out.Attributes, a)
			}
		}
		sum, samples := r.total()
		of := [][2]int64{{r.time, sum}}
		if q.Counts {
			of[0][1] = samples
		}
		for k, t := range r.timestamps {
			if q.Timestamps {
				of = append(of[:k], [2]int64{t, r.values[k]})
			}
		}
		for _, one := range of {
			if q.Timestamps && (one[0] < q.SumsWanted.From || q.SumsWanted.Until != 0 && one[0] >= q.SumsWanted.Until) {
				continue
			}
			out.Time, out.Value, out.Fraction = one[0], one[1]*span.Whole, float64(one[1])*span.Part
			if err := use(out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *fakeEngine) Stacks(_ context.Context, _ string, _, _ int64, ids []answers.EngineID,
	use func(*answers.EngineStack) error,
) error {
	for _, id := range ids {
		s := &answers.EngineStack{ID: id}
		for _, name := range e.stacks[id] {
			s.Frames = append(s.Frames, answers.EngineFrame{Function: name})
		}
		if err := use(s); err != nil {
			return err
		}
	}
	return nil
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
			row := fakeRow{
				typ: answers.EngineType{
					Service: "shop", Stated: "memory", Type: model.SampleType{Type: c.typ, Unit: "count"}, Temporality: c.temporality,
				},
				time: noon.UnixNano(), values: []int64{10},
			}
			if c.temporality != "" {
				row.profile = map[string]string{kind.TemporalityAttribute: c.temporality}
			}
			if c.isTimed {
				row.timestamps = []int64{row.time}
			}
			e := &fakeEngine{rows: []fakeRow{row}}
			s := answers.NewEngineSource(e, time.Hour, time.Second, func() time.Time { return noon.Add(time.Minute) })
			list, err := s.Catalog(t.Context(), "shop", &size.Meter{Context: t.Context()})
			require.NoError(t, err)
			require.Equal(t, model.Shown(c.want), list[0].Values)
			memory := model.NewMemory(t.Context(), nil)
			v, err := s.View(t.Context(), &answers.Query{Selection: model.Selection{Service: "shop"}, Memory: memory,
				Reads: answers.ReadsSeries})
			require.NoError(t, err)
			require.NoError(t, v.Blocks[0].Series("shop", memory, func(list []model.BlockSeries) error {
				require.Equal(t, c.want, list[0].Values)
				return nil
			}))
		})
	}
}
