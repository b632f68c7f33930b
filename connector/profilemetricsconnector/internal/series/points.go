// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/selection"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
)

// WriterKey is the attribute of points that tells which collector has written them: several can have profiles of one
// service.
const WriterKey = "profile.writer.id"

// OverflowKey is the attribute of the series that collects what did not fit, by the semantic conventions.
const OverflowKey = "otel.metric.overflow"

// The attributes of points that functions and packages are in. The first is by the semantic conventions.
const (
	FunctionKey = "code.function.name"
	PackageKey  = "profile.package.name"
)

// OwnKeys are the attributes of points that a Table sets itself.
var OwnKeys = []string{WriterKey, OverflowKey, FunctionKey, PackageKey}

// Point is a value of a series to be sent.
type Point struct {
	series *series
	sum    int64
	// isEnd means that a gauge has no value any more, which is sent once: otherwise Prometheus repeats the last value for
	// five minutes.
	isEnd bool
}

// Points returns the points of all series, in an order in which those of one resource and metric are beside each other.
func (t *Table) Points(now time.Time) (points []Point) {
	for _, of := range t.sources {
		if now.Sub(of.last) >= partsWithin { // otherwise another part may be on its way
			t.detectReset(of)
		}
	}
	all := slices.AppendSeq(slices.DeleteFunc(slices.Clone(t.overflow), func(s *series) bool { return s == nil }),
		maps.Values(t.series))
	for _, s := range all {
		p, isLive := Point{series: s, sum: s.sum}, t.Cumulative || s.sum != s.sent
		if t.Set.Metrics[s.metric].IsGauge {
			p.sum, isLive = 0, false
			for of, part := range s.parts {
				if !of.holds(now) {
					continue
				}
				isLive = true
				if part.generation == of.generation {
					p.sum = otlp.SaturatingAdd(p.sum, part.value)
				}
			}
		}
		if p.isEnd = !isLive && s.isShown; isLive || p.isEnd {
			points = append(points, p)
		}
	}
	slices.SortFunc(points, func(a, b Point) int {
		x, y := a.series, b.series
		return cmp.Or(t.compareResources(x, y), cmp.Compare(x.metric, y.metric), slices.Compare(x.sample, y.sample),
			cmp.Compare(x.frame, y.frame))
	})
	return points
}

// compareResources orders series by the attributes of their resource.
func (t *Table) compareResources(a, b *series) int {
	if a.overflow != b.overflow {
		if a.overflow {
			return 1
		}
		return -1
	}
	return cmp.Or(
		slices.Compare(t.Set.Metrics[a.metric].ResourceKeys, t.Set.Metrics[b.metric].ResourceKeys),
		slices.Compare(a.resource, b.resource))
}

// Write returns points as OTLP metrics, below a scope. Points of one resource are in one resource.
func (t *Table) Write(points []Point, scope string, now time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	var metrics pmetric.MetricSlice
	var current pmetric.NumberDataPointSlice
	for i, p := range points {
		var before *series
		if i > 0 {
			before = points[i-1].series
		}
		isNewResource := before == nil || t.compareResources(before, p.series) != 0
		metric := t.Set.Metrics[p.series.metric]
		if isNewResource {
			rm := md.ResourceMetrics().AppendEmpty()
			PutAttributes(rm.Resource().Attributes(), metric.ResourceKeys, p.series.resource)
			sm := rm.ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(scope)
			metrics = sm.Metrics()
		}
		if isNewResource || before.metric != p.series.metric {
			current = t.newMetric(metrics.AppendEmpty(), metric)
		}
		t.writePoint(current.AppendEmpty(), metric, p, now)
	}
	return md
}

// PutAttributes puts the values of keys that are not empty.
func PutAttributes(m pcommon.Map, keys, values []string) {
	for i, value := range values {
		if value != "" {
			m.PutStr(keys[i], value)
		}
	}
}

func (t *Table) newMetric(m pmetric.Metric, metric *selection.Metric) pmetric.NumberDataPointSlice {
	m.SetName(metric.Name)
	m.SetDescription(metric.Description)
	m.SetUnit(metric.Unit)
	if metric.IsGauge {
		return m.SetEmptyGauge().DataPoints()
	}
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	if t.Cumulative {
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return sum.DataPoints()
}

func (t *Table) writePoint(dp pmetric.NumberDataPoint, metric *selection.Metric, p Point, now time.Time) {
	s, value := p.series, p.sum
	if !metric.IsGauge {
		dp.SetStartTimestamp(pcommon.NewTimestampFromTime(s.start))
		if !t.Cumulative {
			value -= s.sent
		}
	}
	dp.SetTimestamp(pcommon.NewTimestampFromTime(now))
	if p.isEnd {
		dp.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	} else {
		setValue(dp, metric.Unit, value)
	}
	attributes := dp.Attributes()
	PutAttributes(attributes, metric.SampleKeys, s.sample)
	switch {
	case s.overflow:
		attributes.PutBool(OverflowKey, true)
	case metric.Frame == selection.ByPackage:
		attributes.PutStr(PackageKey, s.frame)
	case metric.Frame == selection.ByFunction:
		attributes.PutStr(FunctionKey, s.frame)
	}
	if t.Writer != "" {
		attributes.PutStr(WriterKey, t.Writer)
	}
	for _, x := range s.exemplars {
		e := dp.Exemplars().AppendEmpty()
		e.SetTimestamp(x.Time)
		e.SetTraceID(x.TraceID)
		e.SetSpanID(x.SpanID)
		setValue(e, metric.Unit, x.Value)
	}
}

// setValue sets a value, which is in nanoseconds if the unit is s.
func setValue[V interface {
	SetDoubleValue(v float64)
	SetIntValue(v int64)
}](to V, unit string, value int64) {
	if unit == "s" {
		to.SetDoubleValue(float64(value) / 1e9)
	} else {
		to.SetIntValue(value)
	}
}
