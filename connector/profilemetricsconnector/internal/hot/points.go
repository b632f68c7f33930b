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

// Write returns the shares of all tracks, in messages of about maxPoints points.
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
		w := f.Entries[t.entry].current(t, now)
		if w == nil {
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
		out := output{entry: &f.Entries[t.entry], metrics: sm.Metrics(), writer: writer,
			now: pcommon.NewTimestampFromTime(now)}
		out.shares(w)
		out.changes(f.comparisons(t, w, versions, now))
	}
	if md.DataPointCount() > 0 {
		messages = append(messages, md)
	}
	return messages
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

func (o *output) point(to pmetric.NumberDataPointSlice, function string, value float64, c *comparison) {
	dp := to.AppendEmpty()
	dp.SetTimestamp(o.now)
	dp.SetDoubleValue(value)
	a := dp.Attributes()
	a.PutStr(TypeKey, o.entry.Type)
	a.PutStr(OfKey, o.entry.Of)
	a.PutStr(series.FunctionKey, function)
	if c != nil {
		a.PutStr(BaselineKey, c.baseline)
		if c.version != "" {
			a.PutStr(o.entry.Version, c.version)
			a.PutStr(BaselineVersionKey, c.ofVersion)
		}
	}
	if o.writer != "" {
		a.PutStr(series.WriterKey, o.writer)
	}
}

func (o *output) shares(w *window) {
	to := o.gauge(shareMetric)
	other := 1.0
	for _, r := range w.top(o.entry.Count) {
		other -= float64(r.share)
		o.point(to, r.value, float64(r.share), nil)
	}
	if o.entry.Of == Self {
		o.point(to, Other, max(other, 0), nil)
	}
}

func (o *output) changes(list []comparison) {
	if len(list) == 0 {
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
			o.point(change, r.value, now.Value-base.Value, c)
			o.point(pValue, r.value, shares.PValue(base, now), c)
			o.point(samples, r.value, min(base.Observations, now.Observations), c)
		}
	}
}

func (w *window) top(n int) []row { return w.rows[:min(n, len(w.rows))] }

func (w *window) share(r row) shares.Share {
	return shares.Share{Value: float64(r.share), Variance: float64(r.variance), Observations: w.observations}
}
