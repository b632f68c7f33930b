// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// This file is a store as README, docs/store.md and docs/values.md describe it, in the simplest way: a list of
// messages, and loops over it. Times are Unix nanoseconds.

// message is what a sender pushed, which arrived at once.
type message struct {
	number     int
	arrived    time.Time
	window     time.Duration
	resolution time.Duration
	profiles   []*modelProfile
	isAgain    bool
}

// modelProfile is a profile of one type.
type modelProfile struct {
	service, instance, version, name string
	typ                              model.SampleType
	values                           kind.Values
	time, duration                   int64
	rows                             []modelRow
}

// modelRow is an observation. at is 0 if it has no time.
type modelRow struct {
	stack            string // the root first, separated by semicolons
	endpoint, thread string // empty if it has none
	at, value        int64
}

func (p *modelProfile) series() string {
	return strings.Join([]string{p.service, p.instance, p.version, p.name, p.typ.String()}, "|")
}

func (p *modelProfile) isTimed() bool {
	return slices.ContainsFunc(p.rows, func(r modelRow) bool { return r.at != 0 })
}

// build returns a message as OTLP.
func (m *message) build() *profiletest.Builder {
	b := profiletest.New()
	for _, p := range m.profiles {
		b.Resource("service.name", p.service, "service.instance.id", p.instance, "service.version", p.version).
			Profile(p.typ.Type, p.typ.Unit).Time(uint64(p.time), uint64(p.duration))
		for _, row := range p.rows {
			stack := strings.Split(row.stack, ";")
			slices.Reverse(stack)
			sample := profiletest.Value(row.value, stack...)
			if row.at != 0 {
				sample.Timestamps = []uint64{uint64(row.at)}
			}
			if row.endpoint != "" {
				sample = sample.With(profiletest.Attr("endpoint", row.endpoint))
			}
			if row.thread != "" {
				sample = sample.With(profiletest.Attr("thread.name", row.thread))
			}
			b.Sample(sample)
		}
	}
	return b
}

// counted is a profile as it counts: from start to end, or, as a state that no other follows, until interval after
// start.
type counted struct {
	*modelProfile
	rows                 []modelRow
	start, end, interval int64
	isBaseline, isMoved  bool
}

// naiveStore has what was acknowledged, in the order of its arrival.
type naiveStore struct {
	messages []*message
	refused  int // as older than the one before
	list     []*counted
	// bySeries has those of list that are states, in the order of their times.
	states map[string][]*counted
	known  map[string]*knownSeries
}

// knownSeries is what decides how the next profile of a series counts.
type knownSeries struct {
	at, interval int64
	rows         []modelRow // of the last total
	since        int64      // when the total before that was
}

func newModel(messages []*message) *naiveStore {
	m := &naiveStore{states: map[string][]*counted{}, known: map[string]*knownSeries{}}
	for _, each := range messages {
		m.add(each)
	}
	return m
}

func (m *naiveStore) add(of *message) {
	m.messages = append(m.messages, of)
	for _, p := range of.profiles {
		c := &counted{modelProfile: p, rows: p.rows, start: p.time, end: p.time + p.duration}
		now := of.arrived.UnixNano()
		if c.isMoved = c.end < now-int64(of.window) || c.end > now+int64(time.Minute); c.isMoved {
			c.start, c.end = now-min(p.duration, int64(of.window)), now
		}
		for i := range p.rows {
			if !c.isMoved {
				c.end = max(c.end, p.rows[i].at+1)
			}
		}
		before := m.known[p.series()]
		if p.values == kind.Gauge && of.isAgain {
			continue
		}
		switch p.values {
		case kind.Gauge:
			m.addState(c, before, int64(of.resolution))
		case kind.Cumulative:
			if !m.addTotal(c, before) {
				m.refused++
				continue
			}
		}
		m.list = append(m.list, c)
	}
}

// addState sets the interval of a state, which is the time since the one before, unless that is missing.
func (m *naiveStore) addState(c *counted, before *knownSeries, resolution int64) {
	c.start = c.end
	known := &knownSeries{at: c.start}
	if before != nil {
		*known = *before
		if since := c.start - before.at; since > 0 && (before.interval == 0 || since <= 4*before.interval) {
			known.interval = min(since, int64(time.Hour))
		}
		known.at = max(before.at, c.start)
	}
	if c.interval = known.interval; c.interval == 0 {
		c.interval = int64(time.Minute)
	}
	c.interval = max(c.interval, resolution)
	m.known[c.series()] = known
	states := append(m.states[c.series()], c)
	slices.SortStableFunc(states, func(a, b *counted) int { return int(a.start - b.start) })
	m.states[c.series()] = states
}

// addTotal makes a delta of a total, and reports whether it is not older than the one before.
func (m *naiveStore) addTotal(c *counted, before *knownSeries) bool {
	if before != nil && c.end < before.at {
		return false
	}
	now := &knownSeries{at: c.end, rows: c.rows, since: c.end}
	m.known[c.series()] = now
	if before == nil {
		c.isBaseline = true
		return true
	}
	if now.since = before.at; c.end == before.at { // another part
		now.since = before.since
	}
	if was, has := totalsOf(before.rows), totalsOf(c.rows); !isRestart(was, has) {
		c.rows, now.rows = nil, nil
		for key, value := range has {
			// What falls is an estimate, and has added nothing.
			c.rows = append(c.rows, modelRow{stack: key.stack, endpoint: key.endpoint, value: max(0, value-was[key])})
			now.rows = append(now.rows, modelRow{stack: key.stack, endpoint: key.endpoint, value: max(value, was[key])})
		}
	}
	c.start, c.isBaseline = now.since, now.since == c.end
	return true
}

func totalsOf(rows []modelRow) map[modelKey]int64 {
	of := map[modelKey]int64{}
	for _, row := range rows {
		of[modelKey{"", row.stack, row.endpoint}] += row.value
	}
	return of
}

// isRestart reports whether totals fall by more than a 64th of what both have.
func isRestart(before, now map[modelKey]int64) bool {
	shared, lost := int64(0), int64(0)
	for key, value := range before {
		if has, ok := now[key]; ok {
			shared, lost = shared+value, lost+max(0, value-has)
		}
	}
	return lost > shared/64
}

// modelSelection is a selection with what the model needs to know of it.
type modelSelection struct {
	model.Selection
	until int64
}

func selectionOf(sel model.Selection) modelSelection {
	s := modelSelection{Selection: sel, until: sel.Until}
	if s.until == 0 {
		s.until = math.MaxInt64
	}
	return s
}

// overlap returns the part of a time that is selected. A time without a length has itself.
func (s *modelSelection) overlap(start, end int64) (length int64, ok bool) {
	if start == end {
		return 0, s.From <= start && start < s.until
	}
	length = min(end, s.until) - max(start, s.From)
	return length, length > 0
}

// matches reports whether the resource of a profile has the selected attributes, and, if row is not nil, the row its
// own.
func (s *modelSelection) matches(p *modelProfile, row *modelRow) bool {
	wanted := map[string][]string{}
	for _, a := range s.Attributes {
		wanted[a.Key] = append(wanted[a.Key], a.Value)
	}
	for key, values := range wanted {
		value := map[string]string{"service.name": p.service, "service.instance.id": p.instance,
			"service.version": p.version}[key]
		if key == "endpoint" {
			if row == nil {
				continue
			}
			value = row.endpoint
		}
		if !slices.Contains(values, value) {
			return false
		}
	}
	return true
}

func (s *modelSelection) group(p *modelProfile, row *modelRow) string {
	value := ""
	switch s.GroupBy {
	case "":
		return ""
	case "service.version":
		value = p.version
	case "service.instance.id":
		value = p.instance
	case "endpoint":
		value = row.endpoint
	}
	if value == "" {
		value = answers.NoGroup
	}
	return s.GroupBy + "=" + value
}

// selected calls use with all profiles of a selection that count, until when, and for how long.
func (m *naiveStore) selected(s *modelSelection, use func(c *counted, end, length int64)) (onlyBaselines bool) {
	hasOthers, hasBaselines := false, false
	for _, c := range m.list {
		if c.service != s.Service || c.name != s.Profile || c.typ.Type != s.Type || !s.matches(c.modelProfile, nil) {
			continue
		}
		end := c.end
		if c.values == kind.Gauge {
			end = m.holds(c, s.until)
		}
		length, ok := s.overlap(c.start, end)
		if c.isTimed() && !c.isMoved {
			ok = ok || slices.ContainsFunc(c.rows, func(row modelRow) bool { return s.From <= row.at && row.at < s.until })
		}
		switch {
		case !ok:
		case c.isBaseline:
			hasBaselines = true
		default:
			hasOthers = true
			use(c, end, length)
		}
	}
	return hasBaselines && !hasOthers
}

// next returns the state after one of a series, or nil. Those of one time are its parts.
func (m *naiveStore) next(c *counted) *counted {
	states := m.states[c.series()]
	if i := slices.IndexFunc(states, func(other *counted) bool { return other.start > c.start }); i >= 0 {
		return states[i]
	}
	return nil
}

// holds returns until when a state holds: until the next selected one if that comes within two intervals, otherwise for
// one.
func (m *naiveStore) holds(c *counted, until int64) int64 {
	if next := m.next(c); next != nil && next.start <= c.start+2*c.interval && next.start < until {
		return next.start
	}
	return c.start + c.interval
}

// modelKey is a group, a stack and, for pprofs, an endpoint.
type modelKey struct{ group, stack, endpoint string }

// sums adds up what is selected. isOpen reports that nothing but first totals is selected.
func (m *naiveStore) sums(sel model.Selection) (sums map[modelKey]float64, isOpen bool) {
	s := selectionOf(sel)
	sums = map[modelKey]float64{}
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	isOpen = m.selected(&s, func(c *counted, end, _ int64) {
		first, last = min(first, max(c.start, s.From)), max(last, min(end, s.until))
	})
	m.selected(&s, func(c *counted, end, length int64) {
		weight := 1.0
		switch {
		case c.values == kind.Gauge && s.LastState:
			if next := m.next(c); next != nil && next.start < s.until {
				return
			}
		case c.values == kind.Gauge:
			weight = float64(length) / float64(last-first)
		case c.start < end:
			weight = float64(length) / float64(end-c.start)
		}
		for i := range c.rows {
			row := &c.rows[i]
			switch {
			case !s.matches(c.modelProfile, row):
			case row.at != 0 && !c.isMoved && c.values != kind.Gauge:
				if s.From <= row.at && row.at < s.until {
					sums[modelKey{s.group(c.modelProfile, row), row.stack, row.endpoint}] += float64(row.value)
				}
			default:
				sums[modelKey{s.group(c.modelProfile, row), row.stack, row.endpoint}] += weight * float64(row.value)
			}
		}
	})
	return sums, isOpen
}

// line returns the values of a time line by group: NaN for steps without profiles.
func (m *naiveStore) line(sel model.Selection, from, step int64, n int) map[string][]float64 {
	s := selectionOf(sel)
	lines := map[string][]float64{}
	type state struct {
		group, series string
		step          int
	}
	sums, times := map[state]float64{}, map[state]map[int64]float64{} // the time by start: parts of one time have one
	add := func(group string, i int, value float64) {
		if lines[group] == nil {
			lines[group] = slices.Repeat([]float64{math.NaN()}, n)
		}
		if math.IsNaN(lines[group][i]) {
			lines[group][i] = 0
		}
		lines[group][i] += value
	}
	m.selected(&s, func(c *counted, end, _ int64) {
		byGroup, start, cuts := map[string]float64{}, c.start, c.isTimed() && !c.isMoved
		if cuts { // only a part of it is selected
			start, end = max(start, s.From), min(end, s.until)
		}
		for i := range c.rows {
			isIn := !cuts || s.From <= c.rows[i].at && c.rows[i].at < s.until
			if isIn && s.matches(c.modelProfile, &c.rows[i]) {
				byGroup[s.group(c.modelProfile, &c.rows[i])] += float64(c.rows[i].value)
			}
		}
		for group, value := range byGroup {
			for i := range n {
				of := modelSelection{Selection: model.Selection{From: from + int64(i)*step}, until: from + int64(i+1)*step}
				part, ok := of.overlap(start, end)
				switch {
				case !ok:
				case c.values == kind.Gauge:
					at := state{group, c.series(), i}
					if times[at] == nil {
						times[at] = map[int64]float64{}
					}
					sums[at] += value * float64(part)
					times[at][c.start] = float64(part)
				case start == end:
					add(group, i, value)
				default:
					add(group, i, value*float64(part)/float64(end-start))
				}
			}
		}
	})
	for at, sum := range sums {
		time := 0.0
		for _, part := range times[at] {
			time += part
		}
		add(at.group, at.step, sum/time)
	}
	return lines
}
