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

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
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

func (p *point) withoutValue() point {
	key := *p
	key.value = 0
	return key
}

// isBefore orders points of one group.
func (p *point) isBefore(other *point) bool {
	return cmp.Or(cmp.Compare(p.time, other.time), bytes.Compare(p.link.SpanID[:], other.link.SpanID[:]),
		bytes.Compare(p.link.TraceID[:], other.link.TraceID[:]), cmp.Compare(p.series, other.series)) < 0
}

const pointBytes = 128

// groups are the groups of points, by their labels.
type groups struct {
	*selection
	by     []string
	labels [][]label
	byKey  map[string]int
	// ofSeries is the group of each series, or -1 if that depends on its samples: ofSet.
	ofSeries []int
	ofSet    cache[decision, int]
}

func (g *groups) number(list []label) int {
	key := keyOf(list)
	i, ok := g.byKey[key]
	if !ok {
		_ = g.memory.Grow(len(key) + cacheBytes*(1+len(list))) // its callers check
		i = len(g.labels)
		g.labels = append(g.labels, list)
		g.byKey[key] = i
	}
	return i
}

// of returns the group of a sample.
func (g *groups) of(samples *answers.Samples, row int) int {
	if group := g.ofSeries[samples.Series]; group >= 0 {
		return group
	}
	key := decisionOf(samples, row)
	return g.ofSet.get(samples.Dict, key, g.memory, func() int {
		return g.number(g.grouped(&g.series[key.series], g.by, samples.Dict, key.set))
	})
}

// points calls use with the points of a selection, in no order. Those of one profile and group may come in several
// parts.
func (q *Querier) points(s *selection, by []string, spans bool, use func(*point) error) (*groups, error) {
	if err := checkNames(by); err != nil {
		return nil, err
	}
	g := &groups{selection: s, by: by, byKey: map[string]int{}, ofSeries: make([]int, len(s.series))}
	want := answers.Want{Profiles: true, Links: spans, Attributes: spans}
	for i := range s.series {
		in := &s.series[i]
		if g.ofSeries[i] = -1; in.HasAttributes && len(by) > 0 && s.lacks(in, by) {
			want.Attributes = true
		} else {
			g.ofSeries[i] = g.number(s.grouped(in, by, nil, 0))
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
	return g, selected.Read(func(samples *answers.Samples) error {
		p := &point{series: samples.Series, time: samples.Time, millis: samples.Time / 1e6}
		for row, value := range samples.Values {
			// As in Pyroscope, what is 0 is not there: a profile without samples makes no point.
			if value == 0 || keep != nil && !keep(samples, row) {
				continue
			}
			p.group, p.value = g.of(samples, row), otlp.SaturatingMultiply(value, int64(samples.Weight))
			if spans {
				p.link = s.linkOf(samples, row)
			}
			if err := cmp.Or(s.memory.Err(), use(p)); err != nil {
				return err
			}
		}
		return s.memory.Check()
	})
}

// grouped returns the labels of a series and of a set of attributes of its samples, of the given names and in their
// order: so does Pyroscope, and puts series with equal sums in the order of their labels.
func (s *selection) grouped(in *answers.Series, by []string, dict *dictionary.Dictionary,
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

// bucket is the sum of its profiles. The largest of them represents it.
type bucket struct {
	sum   float64
	count int64
	best  *point
}

type bucketKey struct {
	group int
	at    int64
}

// buckets add up points over time.
type buckets struct {
	*selection
	start, step             int64
	isAverage, hasExemplars bool
	of                      map[bucketKey]*bucket
	// sums has what a group has of a profile, by that without its value.
	sums map[point]*point
}

// SelectSeries returns the sums of profiles, or of the stacks of a call site in them, over time. A point at t has the
// profiles in (t-step, t]; the first one those at t-step, too.
func (q *Querier) SelectSeries(
	ctx context.Context, r *connect.Request[querierv1.SelectSeriesRequest],
) (*connect.Response[querierv1.SelectSeriesResponse], error) {
	in := r.Msg
	step, err := stepMillis(in.Step)
	if err := cmp.Or(err, checkTime(in.Start, in.End)); err != nil {
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
	b := &buckets{
		selection: s, start: in.Start, step: step, of: map[bucketKey]*bucket{}, sums: map[point]*point{},
		isAverage:    in.GetAggregation() == typesv1.TimeSeriesAggregationType_TIME_SERIES_AGGREGATION_TYPE_AVERAGE,
		hasExemplars: in.ExemplarType == typesv1.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL,
	}
	// Points are at start, start+step and so on; what is later than the last of them belongs to none.
	last := in.Start + (in.End-in.Start)/step*step
	g, err := q.points(s, in.GroupBy, false, func(p *point) error {
		if p.millis > last {
			return nil
		}
		return b.add(p)
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&querierv1.SelectSeriesResponse{Series: top(b.series(g), in.GetLimit())}), nil
}

// slot returns the time of the point that has what was at a time.
func slot(start, step, millis int64) int64 {
	return start + max(millis-start+step-1, 0)/step*step
}

// add adds a point. The largest profile of a bucket is its exemplar.
func (b *buckets) add(p *point) error {
	key, taken := bucketKey{p.group, slot(b.start, b.step, p.millis)}, 0
	in := b.of[key]
	if in == nil {
		in = &bucket{}
		b.of[key] = in
		taken += 2 * pointBytes
	}
	in.sum += float64(p.value)
	if b.hasExemplars || b.isAverage {
		profile := p.withoutValue()
		sum := b.sums[profile]
		if sum == nil {
			sum = new(profile)
			b.sums[profile] = sum
			in.count++
			taken += 2 * pointBytes
		}
		sum.value = otlp.SaturatingAdd(sum.value, p.value)
		if in.best == nil || sum.value > in.best.value || sum.value == in.best.value && sum.isBefore(in.best) {
			in.best = sum
		}
	}
	return b.memory.Grow(taken)
}

// series returns the points of each group that has some.
func (b *buckets) series(g *groups) []*typesv1.Series {
	series := make([]*typesv1.Series, len(g.labels))
	for i, list := range g.labels {
		series[i] = &typesv1.Series{Labels: pairs(list)}
	}
	for k, in := range b.of {
		p := &typesv1.Point{Timestamp: k.at, Value: in.sum}
		if b.isAverage {
			p.Value /= float64(in.count)
		}
		if b.hasExemplars {
			p.Exemplars = []*typesv1.Exemplar{b.exemplar(in.best, g.by)}
		}
		series[k.group].Points = append(series[k.group].Points, p)
	}
	return slices.DeleteFunc(series, func(s *typesv1.Series) bool { return len(s.Points) == 0 })
}

// exemplar describes a profile, or a span in it. Its labels are those of its series without those that the group has.
func (s *selection) exemplar(p *point, by []string) *typesv1.Exemplar {
	e := &typesv1.Exemplar{Timestamp: p.millis, Value: p.value}
	if p.link.SpanID != [8]byte{} {
		e.SpanId = hex.EncodeToString(p.link.SpanID[:])
		if p.link.TraceID != [16]byte{} {
			e.TraceId = hex.EncodeToString(p.link.TraceID[:])
		}
	} else {
		e.ProfileId = s.identify(p.series, p.time).String()
	}
	labels, ok := s.exemplars[p.series]
	if !ok {
		labels = pairs(slices.DeleteFunc(s.wanted(s.all(&s.series[p.series]), nil), func(l label) bool {
			return slices.ContainsFunc(by, func(name string) bool { return s.is(name, l.name) })
		}))
		s.exemplars[p.series] = labels
	}
	e.Labels = labels
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
