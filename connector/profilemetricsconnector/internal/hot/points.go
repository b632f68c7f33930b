// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hot

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/series"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/shares"
)

// The attributes of points.
const (
	TypeKey     = "profile.type"
	OfKey       = "profile.share.of"
	BaselineKey = "profile.baseline"
	// BaselineVersionKey is the version that a version is compared with.
	BaselineVersionKey = "profile.baseline.version"
	// Other is the name under which all functions that are not listed are counted.
	Other = "other"
)

// metric is one of those that are written.
type metric struct{ name, unit, description string }

var (
	shareMetric = metric{"profile.function.share", "1",
		"Share that a function has of the profiles of its service within a window."}
	changeMetric = metric{"profile.function.share.change", "1", "How much the share has grown since the baseline."}
	pValueMetric = metric{"profile.function.share.change.p_value", "{probability}",
		"Probability of such a change in either direction if nothing had changed."}
	samplesMetric = metric{"profile.function.share.samples", "{sample}",
		"Samples behind a change: the smaller number of both windows."}
)

type comparison struct {
	now, before        *window
	baseline           string
	version, ofVersion string
}

// shown identifies a share, or the three points of a comparison, which have a baseline.
type shown struct{ function, baseline, version, ofVersion string }

func (s shown) isShare() bool { return s.baseline == "" }

func (c *comparison) shown(function string) shown {
	return shown{function, c.baseline, c.version, c.ofVersion}
}

// Write returns the shares of all tracks, in messages of about maxPoints points. Points that the last messages had and
// these do not are ended: otherwise Prometheus adds the old shares to the new ones for five minutes.
func (f *Functions) Write(scope, writer string, maxPoints int, now time.Time) (messages []pmetric.Metrics) {
	tracks := make([]*track, 0, len(f.tracks))
	for _, t := range f.tracks {
		if t.version == "" {
			tracks = append(tracks, t)
		}
	}
	slices.SortFunc(tracks, func(a, b *track) int {
		return cmp.Or(slices.Compare(a.resource, b.resource), cmp.Compare(a.entry, b.entry))
	})
	versions := f.versions()
	md := pmetric.NewMetrics()
	for _, t := range tracks {
		entry := &f.Entries[t.entry]
		w := entry.current(t, now)
		var list []comparison
		if w != nil {
			list = f.comparisons(t, w, versions, now)
		}
		ended := t.show(entry.shown(w, list))
		if w == nil && len(ended) == 0 {
			continue
		}
		if md.DataPointCount() >= maxPoints {
			messages = append(messages, md)
			md = pmetric.NewMetrics()
		}
		rm := md.ResourceMetrics().AppendEmpty()
		series.PutAttributes(rm.Resource().Attributes(), f.ResourceKeys, t.resource)
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName(scope)
		out := output{entry: entry, metrics: sm.Metrics(), writer: writer, now: pcommon.NewTimestampFromTime(now)}
		out.shares(w, ended)
		out.changes(list, ended)
	}
	if md.DataPointCount() > 0 {
		messages = append(messages, md)
	}
	return messages
}

// shown returns the points of a window, which may be nil, and its comparisons.
func (e *Entry) shown(w *window, list []comparison) (points []shown) {
	if w == nil {
		return nil
	}
	for _, r := range w.top(e.Count) {
		points = append(points, shown{function: r.value})
	}
	if e.Of == Self {
		points = append(points, shown{function: Other})
	}
	for i := range list {
		for _, r := range list[i].now.top(e.Count) {
			points = append(points, list[i].shown(r.value))
		}
	}
	return points
}

// show remembers the points of a track, and returns those that are no longer there.
func (t *track) show(points []shown) (ended []shown) {
	now := make(map[shown]struct{}, len(points))
	for _, point := range points {
		now[point] = struct{}{}
	}
	for _, point := range t.shown {
		if _, ok := now[point]; !ok {
			ended = append(ended, point)
		}
	}
	t.shown = points
	return ended
}

// current returns the window of a track that has ended last, or nil if it has had no samples in it.
func (e *Entry) current(t *track, now time.Time) *window {
	return t.at(now.Truncate(e.Window).Add(-e.Window))
}

// at returns the window that began at a time, or nil if it has had no samples.
func (t *track) at(begin time.Time) *window {
	i, ok := slices.BinarySearchFunc(t.windows, begin, func(w window, begin time.Time) int {
		return w.begin.Compare(begin)
	})
	if !ok {
		return nil
	}
	return &t.windows[i]
}

// versions returns the tracks of versions by the key of the track of all versions, the newest version first.
func (f *Functions) versions() map[string][]*track {
	all := map[string][]*track{}
	for _, t := range f.tracks {
		if t.version != "" {
			key := f.keyOf(t.entry, t.resource, "")
			all[key] = append(all[key], t)
		}
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b *track) int {
			return cmp.Or(b.first.Compare(a.first), cmp.Compare(b.version, a.version))
		})
	}
	return all
}

// comparisons returns what the newest window of a track is compared with.
func (f *Functions) comparisons(t *track, w *window, versions map[string][]*track, now time.Time) (list []comparison) {
	entry := &f.Entries[t.entry]
	if entry.To > 0 {
		if before := t.at(w.begin.Add(-entry.To)); before != nil {
			list = append(list, comparison{now: w, before: before, baseline: withoutZeros.Replace(entry.To.String())})
		}
	}
	if of := versions[f.keyOf(t.entry, t.resource, "")]; len(of) > 1 && len(of[1].windows) > 0 {
		if newest := entry.current(of[0], now); newest != nil {
			list = append(list, comparison{
				now: newest, before: &of[1].windows[len(of[1].windows)-1], baseline: entry.Version, version: of[0].version,
				ofVersion: of[1].version,
			})
		}
	}
	return list
}

// withoutZeros makes 24h of 24h0m0s.
var withoutZeros = strings.NewReplacer("h0m0s", "h", "m0s", "m")

// output writes the metrics of one track.
type output struct {
	entry   *Entry
	metrics pmetric.MetricSlice
	writer  string
	now     pcommon.Timestamp
}

func (o *output) gauge(m metric) pmetric.NumberDataPointSlice {
	to := o.metrics.AppendEmpty()
	to.SetName(m.name)
	to.SetUnit(m.unit)
	to.SetDescription(m.description)
	return to.SetEmptyGauge().DataPoints()
}

func (o *output) point(to pmetric.NumberDataPointSlice, of shown) pmetric.NumberDataPoint {
	dp := to.AppendEmpty()
	dp.SetTimestamp(o.now)
	a := dp.Attributes()
	a.PutStr(TypeKey, o.entry.Type)
	a.PutStr(OfKey, o.entry.Of)
	a.PutStr(series.FunctionKey, of.function)
	if of.baseline != "" {
		a.PutStr(BaselineKey, of.baseline)
		if of.version != "" {
			a.PutStr(o.entry.Version, of.version)
			a.PutStr(BaselineVersionKey, of.ofVersion)
		}
	}
	if o.writer != "" {
		a.PutStr(series.WriterKey, o.writer)
	}
	return dp
}

func (o *output) end(to pmetric.NumberDataPointSlice, of shown) {
	o.point(to, of).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
}

// shares writes the shares of a window, which may be nil, and the ends of others.
func (o *output) shares(w *window, ended []shown) {
	if w == nil && !slices.ContainsFunc(ended, shown.isShare) {
		return
	}
	to := o.gauge(shareMetric)
	if w != nil {
		other := 1.0
		for _, r := range w.top(o.entry.Count) {
			other -= float64(r.share)
			o.point(to, shown{function: r.value}).SetDoubleValue(float64(r.share))
		}
		if o.entry.Of == Self {
			o.point(to, shown{function: Other}).SetDoubleValue(max(other, 0))
		}
	}
	for _, of := range ended {
		if of.isShare() {
			o.end(to, of)
		}
	}
}

// changes writes comparisons, and the ends of others.
func (o *output) changes(list []comparison, ended []shown) {
	if ended = slices.DeleteFunc(slices.Clone(ended), shown.isShare); len(list)+len(ended) == 0 {
		return
	}
	change, pValue, samples := o.gauge(changeMetric), o.gauge(pValueMetric), o.gauge(samplesMetric)
	for i := range list {
		c := &list[i]
		before := map[string]shares.Share{}
		for _, r := range c.before.rows {
			before[r.value] = c.before.share(r)
		}
		for _, r := range c.now.top(o.entry.Count) {
			now := c.now.share(r)
			base, ok := before[r.value]
			if !ok { // it had less than all that were kept
				all := shares.Whole{Total: 1, Observations: c.before.observations}
				base = all.Measure(shares.Part{Sum: c.before.rest})
			}
			of := c.shown(r.value)
			o.point(change, of).SetDoubleValue(now.Value - base.Value)
			o.point(pValue, of).SetDoubleValue(shares.PValue(base, now))
			o.point(samples, of).SetDoubleValue(min(base.Observations, now.Observations))
		}
	}
	for _, of := range ended {
		for _, to := range []pmetric.NumberDataPointSlice{change, pValue, samples} {
			o.end(to, of)
		}
	}
}

func (w *window) top(n int) []row { return w.rows[:min(n, len(w.rows))] }

func (w *window) share(r row) shares.Share {
	return shares.Share{Value: float64(r.share), Variance: float64(r.variance), Observations: w.observations}
}
