// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"cmp"
	"context"
	"math"
	"slices"

	"connectrpc.com/connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
)

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
		s.series, s.rest = s.withSpans()
	}
	// Values of one profile, or of one span in it, are added up first.
	values := map[point]int64{}
	g, err := q.points(s, in.GroupBy, spans, func(p *point) error {
		if spans && p.link.SpanID == [8]byte{} {
			return nil
		}
		key, before := p.withoutValue(), len(values)
		if values[key] = otlp.SaturatingAdd(values[key], p.value); len(values) > before {
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

// withSpans returns the series some of whose samples can have spans.
func (s *selection) withSpans() (series []answers.Series, rest [][]*labels.Matcher) {
	for i := range s.series {
		if s.series[i].HasLinks || s.series[i].HasAttributes {
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
	var yMin [heatRows]float64
	height := max(float64(most)-float64(least), 1) / heatRows
	for i := range yMin {
		yMin[i] = float64(least) + math.Trunc(float64(i)*height)
	}
	type cellKey struct {
		bucketKey
		row int
	}
	slots, best := map[bucketKey]*typesv1.HeatmapSlot{}, map[cellKey]point{}
	isShown := in.ExemplarType == typesv1.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL ||
		in.ExemplarType == typesv1.ExemplarType_EXEMPLAR_TYPE_SPAN
	lastSlot := in.Start + (in.End-in.Start+step-1)/step*step
	for p, value := range values {
		key := bucketKey{p.group, min(slot(in.Start, step, p.millis), lastSlot)}
		in := slots[key]
		if in == nil {
			in = &typesv1.HeatmapSlot{Timestamp: key.at, YMin: slices.Clone(yMin[:]), Counts: make([]int32, heatRows)}
			slots[key] = in
		}
		row := 0
		for row+1 < heatRows && float64(value) >= yMin[row+1] {
			row++
		}
		// If rows have no height, the last one has all values: it reaches up to the largest.
		in.Counts[row]++
		cell := cellKey{key, row}
		e, known := best[cell]
		if isShown && (!known || value > e.value || value == e.value && p.isBefore(&e)) {
			p.value = value
			best[cell] = p
		}
	}
	for key, e := range best {
		slot := slots[key.bucketKey]
		slot.Exemplars = append(slot.Exemplars, s.exemplar(&e, in.GroupBy))
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
