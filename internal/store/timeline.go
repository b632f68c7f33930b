// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// Timeline is the sum of values in each step of time. NaN is a step without profiles.
type Timeline struct {
	Type   SampleType
	Values kind.Values
	// From is the start of the first step, Step its length, in Unix nanoseconds.
	From, Step int64
	Groups     []TimelineGroup
}

// TimelineGroup is one value of the attribute that a timeline is divided by.
type TimelineGroup struct {
	Name   string
	Values []float64
}

// maxPoints bounds the steps of a timeline.
const maxPoints = 10_000

// Timeline adds up the selected values over time, in about points steps. What happened in an interval is spread over it;
// a state holds until the next one.
func (s *Store) Timeline(ctx context.Context, sel Selection, points int, now time.Time) (*Timeline, error) {
	v := s.view(ctx, sel.Meter)
	defer v.release()
	t, r, err := v.read(&sel)
	if err != nil {
		return nil, err
	}
	instances, err := v.instances(&sel, t, r.filters)
	if err != nil {
		return nil, err
	}
	tl := &Timeline{Type: t}
	n := s.steps(tl, &sel, instances, points, now)
	p := &plotter{reader: r, from: tl.From, step: tl.Step, n: n}
	for _, in := range instances {
		tl.Values = shownValues(in.values)
		if err := p.instance(in); err != nil {
			return nil, err
		}
	}
	for g, line := range p.lines {
		if line != nil {
			tl.Groups = append(tl.Groups, TimelineGroup{Name: r.groups.names[g], Values: line.values()})
		}
	}
	slices.SortFunc(tl.Groups, func(a, b TimelineGroup) int { return strings.Compare(a.Name, b.Name) })
	if tl.Groups == nil {
		tl.Groups = []TimelineGroup{{Values: p.line(0).values()}}
	}
	return tl, v.memory.keep(pointBytes * n * len(tl.Groups))
}

// steps sets the start of the timeline and the length and number of its steps.
func (s *Store) steps(tl *Timeline, sel *Selection, instances []*seriesHistory, points int, now time.Time) int {
	from, until := sel.From, sel.Until
	if from == 0 || until == 0 {
		first, last := int64(math.MaxInt64), int64(0)
		for _, in := range instances {
			for _, t := range in.chunks {
				first, last = min(first, t.chunk.start), max(last, t.chunk.end)
			}
		}
		if from == 0 {
			from = max(first, now.Add(-2*s.cfg.Window).UnixNano())
			if last == 0 {
				from = now.Add(-s.cfg.Window).UnixNano()
			}
		}
		if until == 0 {
			until = max(last, now.UnixNano())
		}
	}
	resolution := max(int64(s.cfg.Resolution), 1)
	// Sums of two such times do not overflow.
	from, until = min(from, math.MaxInt64/2-resolution-1), min(until, math.MaxInt64/2-resolution)
	until = max(until, from+1)
	points = min(max(points, 1), maxPoints)
	step := (until - from) / int64(points)
	step = max(resolution, (step+resolution-1)/resolution*resolution)
	tl.From, tl.Step = from/step*step, step
	return int(min((until-tl.From+step-1)/step, maxPoints+1))
}

// plotter draws instances into lines, one for each group.
type plotter struct {
	*reader
	from, step int64
	n          int
	lines      []*line
	// own has what the current instance adds, by group; only for states.
	own map[int]*ownLine
}

// line has the values of a group.
type line struct {
	*bins
	// known[i] is by how many values step i has more than the one before.
	known []int32
}

// values returns the sum of each step, NaN for one without a value, and ends the use of l.
func (l *line) values() []float64 {
	values, known := l.sums(), int32(0)
	for i := range values {
		if known += l.known[i]; known == 0 {
			values[i] = math.NaN()
		}
	}
	return values
}

// ownLine has the sum of an instance's states in each step, and how many they are.
type ownLine struct {
	sums   []float64
	counts []int32
}

func (p *plotter) line(group int) *line {
	for len(p.lines) <= group {
		p.lines = append(p.lines, nil)
	}
	if p.lines[group] == nil {
		_ = p.memory.take(pointBytes * p.n) // there are few groups: instance checks
		p.lines[group] = &line{newBins(p.from, p.step, p.n), make([]int32, p.n+1)}
	}
	return p.lines[group]
}

func (p *plotter) instance(in *seriesHistory) error {
	p.own = map[int]*ownLine{}
	defer func() { p.memory.release(pointBytes * p.n * len(p.own)) }()
	for i := range in.chunks {
		if err := p.memory.check(); err != nil {
			return err
		}
		t := &in.chunks[i]
		switch in.values {
		case kind.State:
			if p.shows(t.chunk.end, t.chunk.end) {
				p.values(t, func(group int, value float64) { p.state(group, t.chunk.end, value) })
			}
		case kind.Total:
			if i == 0 {
				continue
			}
			before := &in.chunks[i-1]
			if !p.shows(before.chunk.end, t.chunk.end) {
				continue
			}
			p.values(t, func(group int, value float64) { p.spread(group, before.chunk.end, t.chunk.end, value) })
			if t.chunk.total < before.chunk.total { // the process has restarted
				continue
			}
			p.values(before, func(group int, value float64) { p.spread(group, before.chunk.end, t.chunk.end, -value) })
		default:
			if p.shows(t.chunk.start, t.chunk.end) {
				p.values(t, func(group int, value float64) { p.spread(group, t.chunk.start, t.chunk.end, value) })
			}
		}
	}
	if in.values == kind.State {
		p.hold(max(in.interval()*3/2, p.step) / p.step)
	}
	return nil
}

// shows reports whether a time from start to end has a part in the timeline.
func (p *plotter) shows(start, end int64) bool {
	return end >= p.from && start <= p.from+p.step*int64(p.n)
}

// values calls use with the sum of a chunk's values, once for each group.
func (p *plotter) values(t *weightedChunk, use func(group int, value float64)) {
	if group, whole := p.whole(t); whole {
		use(group, float64(t.chunk.total))
		return
	}
	sums := map[int]float64{}
	p.observations(t, func(group int, row *rows) { sums[group] += float64(row.value) })
	for group, value := range sums {
		use(group, value)
	}
}

// spread adds a value to the steps between start and end, evenly.
func (p *plotter) spread(group int, start, end int64, value float64) {
	line := p.line(group)
	end = max(end, start+1)
	if !line.add(start, end, value) {
		return
	}
	limit := p.from + p.step*int64(p.n)
	line.known[(max(start, p.from)-p.from)/p.step]++
	line.known[(min(end, limit)-1-p.from)/p.step+1]--
}

// state records a state for hold, which draws those of an instance.
func (p *plotter) state(group int, at int64, value float64) {
	i := (at - p.from) / p.step
	if at < p.from || i >= int64(p.n) {
		return
	}
	own := p.own[group]
	if own == nil {
		_ = p.memory.take(pointBytes * p.n)
		own = &ownLine{sums: make([]float64, p.n), counts: make([]int32, p.n)}
		p.own[group] = own
	}
	own.sums[i] += value
	own.counts[i]++
}

// hold adds the states of one instance to the lines. Each holds for up to steps steps, or until the next one.
func (p *plotter) hold(steps int64) {
	for group, own := range p.own {
		line := p.line(group)
		value, left := 0.0, int64(0)
		for i := range own.counts {
			if own.counts[i] > 0 {
				value, left = own.sums[i]/float64(own.counts[i]), steps
			}
			if left == 0 {
				continue
			}
			left--
			line.direct[i] += value
			line.known[i]++
			line.known[i+1]--
		}
	}
}
