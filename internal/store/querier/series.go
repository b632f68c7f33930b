// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"math"
	"slices"

	"connectrpc.com/connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

// point is the value of a profile, or of a span in it.
type point struct {
	group  int
	millis int64
	value  int64
	// series and time identify the profile, link the span.
	series int
	time   int64
	link   dictionary.Link
}

// isBefore orders points of one group.
func (p *point) isBefore(other *point) bool {
	return cmp.Or(cmp.Compare(p.time, other.time), bytes.Compare(p.link.SpanID[:], other.link.SpanID[:]),
		bytes.Compare(p.link.TraceID[:], other.link.TraceID[:]), cmp.Compare(p.series, other.series)) < 0
}

const pointBytes = 128

type groups struct {
	by     []string
	labels [][]label
	byKey  map[string]int
}

func (g *groups) number(list []label) int {
	key := keyOf(list)
	i, ok := g.byKey[key]
	if !ok {
		i = len(g.labels)
		g.labels = append(g.labels, list)
		g.byKey[key] = i
	}
	return i
}

// points calls use with the points of a selection, in no order. Those of one profile and group may come in several
// parts.
func (q *Querier) points(s *selection, by []string, spans bool, use func(*point) error) (*groups, error) {
	g := &groups{by: by, byKey: map[string]int{}}
	// The group of a series, or -1 if that depends on its samples.
	ofSeries := make([]int, len(s.series))
	want := store.Want{Profiles: true, Links: spans}
	for i := range s.series {
		in := &s.series[i]
		if ofSeries[i] = -1; in.HasAttributes && s.lacks(in, by) {
			want.Attributes = true
		} else {
			ofSeries[i] = g.number(s.grouped(in, by, nil, 0))
		}
	}
	if len(s.series) == 0 {
		return g, nil
	}
	selected, err := q.Store.Select(s.ctx, s.query(want))
	if err != nil {
		return nil, err
	}
	defer selected.Close()
	keep := s.keep()
	var ofSet decisions[int]
	return g, selected.Read(func(samples *store.Samples) error {
		p := &point{series: samples.Series, time: samples.Time, millis: floorMillis(samples.Time)}
		for row, value := range samples.Values {
			// As in Pyroscope, what is 0 is not there: a profile without samples makes no point.
			if value == 0 || keep != nil && !keep(samples, row) {
				continue
			}
			if p.group = ofSeries[p.series]; p.group < 0 {
				set := setOf(samples, row)
				key, ofSet := decision{set, samples.Series}, ofSet.over(samples.Dict)
				group, known := ofSet[key]
				if !known {
					group = g.number(s.grouped(&s.series[p.series], by, samples.Dict, set))
					ofSet[key] = group
					if err := s.memory.Grow(2 * cacheBytes); err != nil {
						return err
					}
				}
				p.group = group
			}
			if p.link = (dictionary.Link{}); spans && row < len(samples.Links) {
				p.link = samples.Dict.Links.At(dictionary.LinkIndex(samples.Links[row]))
			}
			p.value = value * int64(max(samples.Weight, 1))
			if err := use(p); err != nil {
				return err
			}
		}
		return s.memory.Check()
	})
}

func floorMillis(nanos int64) int64 { return nanos / 1e6 }

// grouped returns the labels of a series and of a set of attributes of its samples, of the given names and in their
// order: so does Pyroscope, and puts series with equal sums in the order of their labels.
func (s *selection) grouped(in *store.Series, by []string, dict *dictionary.Dictionary,
	set dictionary.AttributeSetIndex) (list []label) {
	for _, name := range by {
		value, ok := s.value(in, name)
		if !ok && dict != nil {
			value = s.sampleValue(dict, set, name)
		}
		if value != "" && !slices.ContainsFunc(list, func(l label) bool { return l.name == name }) {
			list = append(list, label{name, value})
		}
	}
	return list
}

func stepMillis(seconds float64) (int64, error) {
	if !(seconds >= 0.001 && seconds <= math.MaxInt32) {
		return 0, invalid("step must be from 0.001 to %d seconds, found %g", math.MaxInt32, seconds)
	}
	return int64(seconds * 1000), nil
}

type bucket struct {
	sum   float64
	count int64
	best  *exemplar
}

// exemplar is a profile that represents a point.
type exemplar struct {
	point
	value int64
}

// SelectSeries returns the sums of profiles, or of the stacks of a call site in them, over time. A point at t has the
// profiles in (t-step, t]; the first one those at t-step, too.
func (q *Querier) SelectSeries(
	ctx context.Context, r *connect.Request[querierv1.SelectSeriesRequest],
) (*connect.Response[querierv1.SelectSeriesResponse], error) {
	in := r.Msg
	step, err := stepMillis(in.Step)
	if err != nil {
		return nil, err
	}
	if in.ExemplarType == typesv1.ExemplarType_EXEMPLAR_TYPE_SPAN {
		return nil, connect.NewError(connect.CodeUnimplemented, errNoSpanExemplars)
	}
	s, err := q.selectTyped(ctx, in.ProfileTypeID, in.LabelSelector, in.Start-step, in.End)
	if err != nil {
		return nil, err
	}
	if err := s.selectStacks(in.StackTraceSelector); err != nil {
		return nil, err
	}
	// Points are at start, start+step and so on; what is later than the last of them belongs to none.
	last := in.Start + (in.End-in.Start)/step*step
	type key struct {
		group int
		at    int64
	}
	found := map[key]*bucket{}
	exemplars := in.ExemplarType == typesv1.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL
	byProfile := map[point]*exemplar{}
	seen := map[profileGroup]bool{}
	g, err := q.points(s, in.GroupBy, false, func(p *point) error {
		if p.millis > last || in.End < in.Start {
			return nil
		}
		at := in.Start
		if p.millis > at {
			at += (p.millis - at + step - 1) / step * step
		}
		b := found[key{p.group, at}]
		if b == nil {
			b = &bucket{}
			found[key{p.group, at}] = b
			if err := s.memory.Grow(2 * pointBytes); err != nil {
				return err
			}
		}
		b.sum += float64(p.value)
		of := profileGroup{p.group, p.series, p.time}
		if !seen[of] &&
			(exemplars || in.GetAggregation() == typesv1.TimeSeriesAggregationType_TIME_SERIES_AGGREGATION_TYPE_AVERAGE) {
			seen[of] = true
			b.count++
			if err := s.memory.Grow(pointBytes); err != nil {
				return err
			}
		}
		if exemplars {
			return b.exemplify(s, byProfile, p)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	series := make([]*typesv1.Series, len(g.labels))
	for i, list := range g.labels {
		series[i] = &typesv1.Series{Labels: pairs(list)}
	}
	for k, b := range found {
		value := b.sum
		if in.GetAggregation() == typesv1.TimeSeriesAggregationType_TIME_SERIES_AGGREGATION_TYPE_AVERAGE {
			value /= float64(b.count)
		}
		p := &typesv1.Point{Timestamp: k.at, Value: value}
		if b.best != nil {
			p.Exemplars = []*typesv1.Exemplar{s.exemplar(&b.best.point, b.best.value, in.GroupBy)}
		}
		series[k.group].Points = append(series[k.group].Points, p)
	}
	series = slices.DeleteFunc(series, func(s *typesv1.Series) bool { return len(s.Points) == 0 })
	return connect.NewResponse(&querierv1.SelectSeriesResponse{Series: top(series, in.GetLimit())}), nil
}

// profileGroup is what a group has of a profile.
type profileGroup struct {
	group, series int
	time          int64
}

// exemplify adds a point to its profile, and makes the largest profile of the bucket its exemplar.
func (b *bucket) exemplify(s *selection, byProfile map[point]*exemplar, p *point) error {
	key := point{group: p.group, series: p.series, time: p.time}
	e := byProfile[key]
	if e == nil {
		e = &exemplar{point: *p}
		byProfile[key] = e
		if err := s.memory.Grow(2 * pointBytes); err != nil {
			return err
		}
	}
	if e.value += p.value; b.best == nil || e.value > b.best.value {
		b.best = e
	}
	return nil
}

// exemplar describes a profile, or a span in it. Its labels are those of its series without those that the group has.
func (s *selection) exemplar(p *point, value int64, by []string) *typesv1.Exemplar {
	e := &typesv1.Exemplar{Timestamp: p.millis, Value: value}
	in := &s.series[p.series]
	if p.link.SpanID != [8]byte{} {
		e.SpanId = hex.EncodeToString(p.link.SpanID[:])
		if p.link.TraceID != [16]byte{} {
			e.TraceId = hex.EncodeToString(p.link.TraceID[:])
		}
	} else {
		e.ProfileId = identify(in, p.time).String()
	}
	e.Labels = pairs(slices.DeleteFunc(s.wanted(s.all(in), nil), func(l label) bool {
		return slices.ContainsFunc(by, func(name string) bool { return s.is(name, l.name) })
	}))
	return e
}

// top sorts series by the sum of their points, the largest first, and returns the first ones.
func top(series []*typesv1.Series, limit int64) []*typesv1.Series {
	sums := map[*typesv1.Series]float64{}
	for _, s := range series {
		slices.SortFunc(s.Points, func(a, b *typesv1.Point) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
		for _, p := range s.Points {
			sums[s] += p.Value
		}
	}
	slices.SortFunc(series, func(a, b *typesv1.Series) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), comparePairs(a.Labels, b.Labels))
	})
	if limit > 0 && int64(len(series)) > limit {
		return series[:limit]
	}
	return series
}

const heatRows = 20

// SelectHeatmap counts profiles, or spans, by time and value.
func (q *Querier) SelectHeatmap(
	ctx context.Context, r *connect.Request[querierv1.SelectHeatmapRequest],
) (*connect.Response[querierv1.SelectHeatmapResponse], error) {
	in := r.Msg
	step, err := stepMillis(in.Step)
	spans := in.QueryType == querierv1.HeatmapQueryType_HEATMAP_QUERY_TYPE_SPAN
	switch {
	case err != nil:
		return nil, err
	case in.GetLimit() < 0:
		return nil, invalid("limit must not be negative, found %d", in.GetLimit())
	case in.Start >= in.End:
		return nil, invalid("start must be before end, found %d and %d", in.Start, in.End)
	case in.QueryType == querierv1.HeatmapQueryType_HEATMAP_QUERY_TYPE_UNSPECIFIED:
		return nil, invalid("query_type must be HEATMAP_QUERY_TYPE_INDIVIDUAL or HEATMAP_QUERY_TYPE_SPAN")
	case in.ExemplarType == typesv1.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL && spans,
		in.ExemplarType == typesv1.ExemplarType_EXEMPLAR_TYPE_SPAN && !spans:
		return nil, invalid("exemplar_type must match query_type")
	}
	s, err := q.selectTyped(ctx, in.ProfileTypeID, in.LabelSelector, in.Start-step, in.End)
	if err != nil {
		return nil, err
	}
	if spans {
		s.series, s.rest = s.withLinks()
	}
	// Values of one profile, or of one span in it, are added up first.
	values := map[point]int64{}
	g, err := q.points(s, in.GroupBy, spans, func(p *point) error {
		if spans && p.link.SpanID == [8]byte{} {
			return nil
		}
		key := *p
		key.value = 0
		before := len(values)
		if values[key] += p.value; len(values) > before {
			return s.memory.Grow(2 * pointBytes)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&querierv1.SelectHeatmapResponse{Series: topHeat(s.heatmap(g, values, in, step),
		in.GetLimit())}), nil
}

// withLinks returns the series some of whose samples have links.
func (s *selection) withLinks() (series []store.Series, rest [][]*labels.Matcher) {
	for i := range s.series {
		if s.series[i].HasLinks {
			series, rest = append(series, s.series[i]), append(rest, s.rest[i])
		}
	}
	return series, rest
}

func (s *selection) heatmap(g *groups, values map[point]int64, in *querierv1.SelectHeatmapRequest,
	step int64) []*typesv1.HeatmapSeries {
	if len(values) == 0 {
		return nil
	}
	least, most := int64(math.MaxInt64), int64(0)
	for _, value := range values {
		least, most = min(least, value), max(most, value)
	}
	if least == most {
		most = least + 1
	}
	var yMin [heatRows]float64
	height := float64(most-least) / heatRows
	for i := range yMin {
		yMin[i] = float64(least + int64(float64(i)*height))
	}
	type slotKey struct {
		group int
		at    int64
	}
	type cellKey struct {
		slotKey
		row int
	}
	slots, best := map[slotKey]*typesv1.HeatmapSlot{}, map[cellKey]*exemplar{}
	isShown := in.ExemplarType == typesv1.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL ||
		in.ExemplarType == typesv1.ExemplarType_EXEMPLAR_TYPE_SPAN
	lastSlot := in.Start + (in.End-in.Start+step-1)/step*step
	for p, value := range values {
		at := in.Start
		if p.millis > at {
			at = min(at+(p.millis-at+step-1)/step*step, lastSlot)
		}
		key := slotKey{p.group, at}
		slot := slots[key]
		if slot == nil {
			slot = &typesv1.HeatmapSlot{Timestamp: at, YMin: slices.Clone(yMin[:]), Counts: make([]int32, heatRows)}
			slots[key] = slot
		}
		row := 0
		for row+1 < heatRows && float64(value) >= yMin[row+1] {
			row++
		}
		// If rows have no height, the last one has all values: it reaches up to the largest.
		slot.Counts[row]++
		cell := cellKey{key, row}
		if e := best[cell]; isShown && (e == nil || value > e.value || value == e.value && p.isBefore(&e.point)) {
			best[cell] = &exemplar{p, value}
		}
	}
	for key, e := range best {
		slot := slots[key.slotKey]
		slot.Exemplars = append(slot.Exemplars, s.exemplar(&e.point, e.value, in.GroupBy))
	}
	series := make([]*typesv1.HeatmapSeries, len(g.labels))
	for i, list := range g.labels {
		series[i] = &typesv1.HeatmapSeries{Labels: pairs(list)}
	}
	for key, slot := range slots {
		slices.SortFunc(slot.Exemplars, func(a, b *typesv1.Exemplar) int { return cmp.Compare(a.Value, b.Value) })
		series[key.group].Slots = append(series[key.group].Slots, slot)
	}
	series = slices.DeleteFunc(series, func(s *typesv1.HeatmapSeries) bool { return len(s.Slots) == 0 })
	for _, s := range series {
		slices.SortFunc(s.Slots, func(a, b *typesv1.HeatmapSlot) int { return cmp.Compare(a.Timestamp, b.Timestamp) })
	}
	slices.SortFunc(series, func(a, b *typesv1.HeatmapSeries) int { return comparePairs(a.Labels, b.Labels) })
	return series
}

func topHeat(series []*typesv1.HeatmapSeries, limit int64) []*typesv1.HeatmapSeries {
	if limit <= 0 || int64(len(series)) <= limit {
		return series
	}
	count := func(s *typesv1.HeatmapSeries) (n int) {
		for _, slot := range s.Slots {
			for _, c := range slot.Counts {
				n += int(c)
			}
		}
		return n
	}
	slices.SortStableFunc(series, func(a, b *typesv1.HeatmapSeries) int { return cmp.Compare(count(b), count(a)) })
	return series[:limit]
}
