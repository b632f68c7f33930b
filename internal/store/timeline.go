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

const maxPoints = 10_000

// Timeline adds up the selected values over time, in about points steps. What happened in a time is spread over it;
// a gauge holds until the next one.
func (s *Store) Timeline(ctx context.Context, sel Selection, points int, now time.Time) (*Timeline, error) {
	v := s.view(newMemory(ctx, sel.Meter))
	defer v.release()
	return v.timeline(&sel, points, now, Config{Window: s.cfg.Window, Resolution: s.cfg.Resolution}, nil)
}

// timeline adds up the selected values. byGroup returns those of chunks whose values depend on their samples, if an engine has these.
func (v *view) timeline(sel *Selection, points int, now time.Time, cfg Config,
	byGroup func(*reader, []weightedChunk) (map[*chunk]map[int]float64, error),
) (*Timeline, error) {
	types, r, err := v.read(sel, false)
	if err != nil {
		return nil, err
	}
	instances, err := v.instances(sel, types[0], r.filters)
	if err != nil {
		return nil, err
	}
	tl := &Timeline{Type: types[0]}
	n := tl.steps(sel, instances, points, now, cfg)
	p := &plotter{reader: r, view: v, from: tl.From, step: tl.Step, n: n}
	if byGroup != nil {
		var parts []weightedChunk
		for _, in := range instances {
			parts = append(parts, p.parts(in)...)
		}
		if p.sums, err = byGroup(r, parts); err != nil {
			return nil, err
		}
	}
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

// steps sets the start of the timeline and the length of its steps, and returns their number.
func (tl *Timeline) steps(sel *Selection, instances []*seriesHistory, points int, now time.Time, cfg Config) int {
	from, until := sel.From, sel.Until
	if from == 0 || until == 0 {
		first, last := int64(math.MaxInt64), int64(0)
		for _, in := range instances {
			for _, w := range in.chunks {
				first, last = min(first, w.chunk.start), max(last, w.chunk.last())
			}
		}
		if from == 0 {
			from = max(first, now.Add(-2*cfg.Window).UnixNano())
			if last == 0 {
				from = now.Add(-cfg.Window).UnixNano()
			}
		}
		if until == 0 {
			until = max(last, now.UnixNano())
		}
	}
	resolution := max(int64(cfg.Resolution), 1)
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
	view       *view
	from, step int64
	n          int
	lines      []*line
	// own has what the current instance adds, by group; only for gauges.
	own map[int]*ownLine
	// sums are those of parts, by group, if an engine has added them up.
	sums map[*chunk]map[int]float64
}

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

// ownLine has the sum of an instance's gauges × the time for which they hold in each step, and the sum of these times.
type ownLine struct{ sums, times []float64 }

func (p *plotter) line(group int) *line {
	for len(p.lines) <= group {
		p.lines = append(p.lines, nil)
	}
	if p.lines[group] == nil {
		_ = p.memory.Take(pointBytes * p.n) // there are few groups: instance checks
		p.lines[group] = &line{newBins(p.from, p.step, p.n), make([]int32, p.n+1)}
	}
	return p.lines[group]
}

func (p *plotter) instance(in *seriesHistory) error {
	p.own = map[int]*ownLine{}
	defer func() { p.memory.Release(pointBytes * p.n * len(p.own)) }()
	if err := p.view.load(p.parts(in)); err != nil {
		return err
	}
	for i := range in.chunks {
		if err := p.memory.Check(); err != nil {
			return err
		}
		w := &in.chunks[i]
		until, add := w.chunk.end, p.spread
		if w.chunk.values == kind.Gauge {
			until, add = in.holds(p.sel, i), p.state
		}
		_, _, isSelected := p.sel.overlap(w.chunk.start, until)
		if isSelected && w.chunk.flags&isBaseline == 0 && p.shows(w.chunk.start, until) {
			p.values(w, func(group int, value float64) { add(group, w.chunk.start, until, value) })
		}
	}
	p.addOwn()
	return nil
}

// parts returns the chunks of an instance without data whose values depend on their samples.
func (p *plotter) parts(in *seriesHistory) (parts []weightedChunk) {
	for i := range in.chunks {
		w := &in.chunks[i]
		if w.chunk.data != nil {
			continue
		}
		if _, whole := p.whole(w); !whole {
			parts = append(parts, *w)
		}
	}
	return parts
}

// shows reports whether a time from start to end has a part in the timeline.
func (p *plotter) shows(start, end int64) bool {
	return end >= p.from && start <= p.from+p.step*int64(p.n)
}

// values calls use with the sum of a chunk's values, once for each group.
func (p *plotter) values(w *weightedChunk, use func(group int, value float64)) {
	if group, whole := p.whole(w); whole {
		use(group, float64(w.chunk.total))
		return
	}
	sums := p.sums[w.chunk]
	if !p.view.isEngine {
		sums = map[int]float64{}
		p.observations(w, func(group int, row *rows) { sums[group] += float64(row.value) })
	}
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

// state records a gauge that holds from start to end, for addOwn.
func (p *plotter) state(group int, start, end int64, value float64) {
	own := p.own[group]
	if own == nil {
		_ = p.memory.Take(pointBytes * p.n)
		own = &ownLine{sums: make([]float64, p.n), times: make([]float64, p.n)}
		p.own[group] = own
	}
	limit := p.from + p.step*int64(p.n)
	for start, end = max(start, p.from), min(end, limit); start < end; {
		i := (start - p.from) / p.step
		next := min(p.from+(i+1)*p.step, end)
		own.sums[i] += value * float64(next-start)
		own.times[i] += float64(next - start)
		start = next
	}
}

// addOwn adds the gauges of one instance to the lines. A step has their mean over the time for which they hold.
func (p *plotter) addOwn() {
	for group, own := range p.own {
		line := p.line(group)
		for i, time := range own.times {
			if time > 0 {
				line.direct[i] += own.sums[i] / time
				line.known[i]++
				line.known[i+1]--
			}
		}
	}
}
