// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package series keeps the series of metrics from one message to the next, and writes them as OTLP metrics. Add adds
// what reduce has made of a message, Points writes the values, and Sent ends an interval once they have been delivered.
//
// What happened is added up. A total of a process becomes what was added since the total before of the same process;
// the first one is a baseline, and a total that falls begins anew. A state counts until the next one of its process,
// for two intervals at most. States of several processes in one series are added up. The parts of a profile that was
// divided have one time, and are added up; a part that is sent again is dropped.
//
// Series, processes and their bytes are bounded. What happened beyond that is in one series of each metric, with the
// attribute otel.metric.overflow; totals and states are counted as dropped, since they could not be told apart.
package series

import (
	"crypto/sha256"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/reduce"
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/selection"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// Options bound a Table.
type Options struct {
	Set       *selection.Set
	MaxSeries int
	MaxBytes  int
	// Expiry is how long a series without new values is kept.
	Expiry time.Duration
	// Cumulative is the temporality of sums.
	Cumulative bool
	// Alternates is called with attributes of a resource whose totals are of several processes.
	Alternates func(keys, values []string)
	// Writer is the attribute that tells the series of several collectors apart, or "".
	Writer string
}

// Table has the series of all metrics. One goroutine uses it at a time.
type Table struct {
	Options
	series   map[string]*series
	overflow []*series
	sources  map[sourceKey]*source
	bytes    int
	// began is the end of the last interval.
	began time.Time
}

type series struct {
	metric   int
	resource []string
	sample   []string
	frame    string
	overflow bool

	// sum is all that has happened, sent the part of it that was delivered as deltas.
	sum, sent int64
	start     time.Time
	last      time.Time
	exemplars reduce.Exemplars
	// isShown means that a gauge has been sent, and not ended.
	isShown bool
	// parts are what processes have of a series of totals or states.
	parts map[*source]*part
	bytes int
}

// part is what one process has of a series.
type part struct {
	// value is from the profile numbered generation, in all of its messages so far; before is from the previous one.
	value, before int64
	generation    uint64
}

type sourceKey struct {
	metric   int
	identity [sha256.Size]byte
}

// source is a process whose profiles have totals or states.
type source struct {
	// generation counts its profiles.
	generation uint64
	// time is that of the newest profile, gaps are the last two times between profiles.
	time int64
	gaps [2]int64
	// total is what the newest profile has in the messages so far, totalBefore what the one before had in all.
	total, totalBefore int64
	// messages are the fingerprints of the newest profile's messages.
	messages map[uint64]struct{}
	// resetAt is the generation before which totals do not count, since the process has restarted.
	resetAt uint64
	// alternation shows that several processes send the totals. It has noted those of generation notedAt.
	alternation kind.Alternation
	notedAt     uint64
	isBaseline  bool
	values      kind.Values
	last        time.Time
	// series are those that it has a part of.
	series []*series
}

const (
	seriesBytes  = 320
	sourceBytes  = 312
	partBytes    = 120
	messageBytes = 40
)

// New returns an empty Table. Its first interval begins now.
func New(options Options, now time.Time) *Table {
	return &Table{
		Options: options, series: map[string]*series{}, sources: map[sourceKey]*source{},
		overflow: make([]*series, len(options.Set.Metrics)), began: now,
	}
}

// Len and Bytes return what the table keeps.
func (t *Table) Len() int { return len(t.series) }

// Bytes returns the memory of the table.
func (t *Table) Bytes() int { return t.bytes }

// Add adds what a message has, and counts in the result what it drops and what is in the series of the overflow.
func (t *Table) Add(r *reduce.Result, now time.Time) {
	sources := t.beginProfiles(r, now)
	for i := range r.Additions {
		a := &r.Additions[i]
		var of *source
		if a.Source >= 0 {
			if of = sources[a.Source].source; of == nil {
				r.Dropped[sources[a.Source].dropped] += a.Samples
				continue
			}
			if of.isBaseline {
				r.Dropped[reduce.Baseline] += a.Samples
			}
		}
		s := t.seriesOf(a, of != nil, now)
		if s == nil {
			r.Dropped[reduce.MaxSeries] += a.Samples
			continue
		}
		if s.overflow {
			r.Overflow += a.Samples
		}
		s.last = now
		if of != nil {
			if !t.addPart(s, of, a.Value, r.Sources[a.Source].Values) {
				r.Dropped[reduce.MaxSeries] += a.Samples
			}
		} else {
			s.sum = otlp.SaturatingAdd(s.sum, a.Value)
		}
		for _, x := range a.Exemplars {
			s.exemplars.Add(x)
		}
	}
}

// admission is a profile's process, or why it does not count.
type admission struct {
	source  *source
	dropped reduce.Reason
}

// beginProfiles finds the process of each profile, and begins its next profile unless this is a part of one that has
// begun.
func (t *Table) beginProfiles(r *reduce.Result, now time.Time) []admission {
	if len(r.Sources) == 0 {
		return nil
	}
	list := make([]admission, len(r.Sources))
	// Of several profiles of one process in a message, the newest one counts: totals include what the others have, and a
	// state is replaced.
	newest := map[sourceKey]int64{}
	for i := range r.Sources {
		in := &r.Sources[i]
		key := sourceKey{in.Metric, in.Identity}
		newest[key] = max(newest[key], in.Time)
	}
	for i := range r.Sources {
		in := &r.Sources[i]
		key := sourceKey{in.Metric, in.Identity}
		if in.Time < newest[key] {
			list[i].dropped = reduce.Order
			continue
		}
		list[i] = t.beginProfile(key, in, now)
	}
	return list
}

func (t *Table) beginProfile(key sourceKey, in *reduce.Source, now time.Time) admission {
	of := t.sources[key]
	switch {
	case of == nil:
		if len(t.sources) >= t.MaxSeries || t.bytes+sourceBytes+messageBytes > t.MaxBytes {
			return admission{dropped: reduce.MaxSeries}
		}
		of = &source{
			isBaseline: in.Values == kind.Cumulative, generation: 1, time: in.Time, messages: map[uint64]struct{}{},
			gaps: [2]int64{defaultInterval, defaultInterval},
		}
		t.sources[key] = of
		t.bytes += sourceBytes
	case in.Time < of.time:
		return admission{dropped: reduce.Order}
	case in.Time > of.time:
		t.detectReset(of)
		t.bytes -= messageBytes * len(of.messages)
		of.begin(in.Time)
	}
	// What has arrived before was sent again. Otherwise it is another part of the same profile, which was divided.
	if _, ok := of.messages[in.Fingerprint]; ok {
		return admission{dropped: reduce.Duplicate}
	}
	if t.bytes+messageBytes > t.MaxBytes {
		return admission{dropped: reduce.MaxSeries}
	}
	of.messages[in.Fingerprint] = struct{}{}
	t.bytes += messageBytes
	of.total = otlp.SaturatingAdd(of.total, in.Total)
	of.last, of.values = now, in.Values
	return admission{source: of}
}

const (
	// maxInterval bounds the time between two states of a process, and defaultInterval is it while nothing is known.
	maxInterval     = int64(time.Hour)
	defaultInterval = int64(time.Minute)
	// partsWithin is how long after each other the parts of a profile arrive.
	partsWithin = time.Second
)

// begin begins the next profile of a process.
func (s *source) begin(at int64) {
	s.gaps = [2]int64{s.gaps[1], min(at-s.time, maxInterval)}
	s.isBaseline = false
	s.generation++
	s.time, s.totalBefore, s.total = at, s.total, 0
	clear(s.messages)
}

// detectReset counts the totals of a profile whole whose parts have all arrived, if they are less than those of the one
// before: the process has restarted.
func (t *Table) detectReset(of *source) {
	if of.values != kind.Cumulative {
		return
	}
	hasRestarted := of.total < of.totalBefore
	isNew := of.notedAt != of.generation
	of.notedAt = of.generation
	if isNew && of.alternation.Note(of.total, hasRestarted) && len(of.series) > 0 {
		s := of.series[0]
		t.Alternates(t.Set.Metrics[s.metric].ResourceKeys, s.resource)
	}
	if !hasRestarted || of.resetAt == of.generation {
		return
	}
	of.resetAt = of.generation
	for _, s := range of.series {
		if p := s.parts[of]; p.generation == of.generation {
			s.sum = otlp.SaturatingAdd(s.sum, p.value-max(p.value-p.before, 0))
			p.before = 0
		}
	}
}

// holds reports whether a state still counts: for two intervals after it has arrived. An interval is the larger one of
// the last two gaps, so that two states close together do not end it.
func (s *source) holds(now time.Time) bool {
	return now.Sub(s.last) <= 2*time.Duration(max(s.gaps[0], s.gaps[1]))
}

// addPart adds what a profile of a process has of a series. It returns false if there is no room.
func (t *Table) addPart(s *series, of *source, value int64, values kind.Values) bool {
	p := s.parts[of]
	if p == nil {
		if t.bytes+partBytes > t.MaxBytes {
			return false
		}
		t.bytes += partBytes
		p = &part{}
		if s.parts == nil {
			s.parts = map[*source]*part{}
		}
		s.parts[of] = p
		of.series = append(of.series, s)
	}
	if p.generation != of.generation {
		// What the process had before it restarted does not count.
		if p.before = p.value; p.generation < of.resetAt {
			p.before = 0
		}
		p.value, p.generation = 0, of.generation
	}
	counted := max(p.value-p.before, 0)
	p.value = otlp.SaturatingAdd(p.value, value)
	if values == kind.Cumulative {
		if of.isBaseline {
			p.before = p.value
		}
		s.sum = otlp.SaturatingAdd(s.sum, max(p.value-p.before, 0)-counted)
	}
	return true
}

// seriesOf returns the series of an addition, that of the overflow if there is no room, or nil for a state or total
// that has none.
func (t *Table) seriesOf(a *reduce.Addition, hasSource bool, now time.Time) *series {
	if a.Key != nil {
		if s, ok := t.series[string(a.Key)]; ok {
			return s
		}
		bytes := seriesBytes + 2*len(a.Key) + 16*(len(a.Resource)+len(a.Sample))
		if len(t.series) < t.MaxSeries && t.bytes+bytes <= t.MaxBytes {
			s := &series{
				metric: a.Metric, resource: CloneAll(a.Resource), sample: CloneAll(a.Sample), frame: strings.Clone(a.Frame),
				start: t.began, last: now, bytes: bytes,
			}
			t.bytes += bytes
			t.series[string(a.Key)] = s
			return s
		}
	}
	if hasSource {
		return nil
	}
	if t.overflow[a.Metric] == nil {
		t.overflow[a.Metric] = &series{metric: a.Metric, overflow: true, start: t.began}
	}
	return t.overflow[a.Metric]
}

// CloneAll returns strings that are not parts of a message.
func CloneAll(list []string) []string {
	own := make([]string, len(list))
	for i, s := range list {
		own[i] = strings.Clone(s)
	}
	return own
}

// Sent ends the interval of series whose points were delivered, or refused permanently.
func (t *Table) Sent(points []Point, now time.Time) {
	for _, p := range points {
		s := p.series
		s.exemplars = s.exemplars[:0]
		if t.Set.Metrics[s.metric].IsGauge {
			s.isShown = !p.isEnd
		} else if !t.Cumulative {
			s.sent, s.start = p.sum, now
		}
	}
}

// Expire removes series and processes without new values, and begins the next interval.
func (t *Table) Expire(now time.Time) {
	t.began = now
	for key, of := range t.sources {
		if now.Sub(of.last) <= t.Expiry {
			continue
		}
		for _, s := range of.series {
			delete(s.parts, of)
			t.bytes -= partBytes
		}
		delete(t.sources, key)
		t.bytes -= sourceBytes + messageBytes*len(of.messages)
	}
	for key, s := range t.series {
		if now.Sub(s.last) > t.Expiry && len(s.parts) == 0 && !s.isShown && (t.Cumulative || s.sum == s.sent) {
			delete(t.series, key)
			t.bytes -= s.bytes
		}
	}
}
