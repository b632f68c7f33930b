// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// Timeline is the sum of values in each step of time. NaN is a step without profiles.
type Timeline struct {
	Type   model.SampleType
	Values kind.Values
	// From is the start of the first step, Step its length, in Unix nanoseconds.
	From, Step int64
	Groups     []TimelineGroup
	// MoreGroups is how many values of the attribute share OtherGroup.
	MoreGroups int
}

// TimelineGroup is one value of the attribute that a timeline is divided by.
type TimelineGroup struct {
	Name   string
	Values []float64
}

const maxPoints = 10_000

// Sum returns the sum of the values that are there, and their number.
func Sum(values []float64) (sum float64, known int) {
	for _, v := range values {
		if !math.IsNaN(v) {
			sum, known = sum+v, known+1
		}
	}
	return sum, known
}

// Timeline adds up the selected values over time, in about points steps. What happened in a time is spread over it; a
// gauge holds until the next one.
func (s *Querier) Timeline(ctx context.Context, sel model.Selection, points int, now time.Time) (*Timeline, error) {
	sel.LastState = false
	status, err := s.Status(ctx)
	if err != nil {
		return nil, err
	}
	q := s.query(ctx, sel, Want{Profiles: true})
	v, err := s.View(ctx, q)
	if err != nil {
		return nil, err
	}
	defer v.Release()
	return v.timeline(q, points, now, &status)
}

// timeline adds up the selected values.
func (v *View) timeline(q *Query, points int, now time.Time, status *Status) (*Timeline, error) {
	types, err := v.resolveTypes(&q.Selection, false)
	if err != nil {
		return nil, err
	}
	s := v.scan(q, types)
	if s.keys, err = filterKeys(&q.Selection); err != nil {
		return nil, err
	}
	planned, err := s.plan()
	if err != nil {
		return nil, err
	}
	tl := &Timeline{Type: planned.Type, Values: planned.Values}
	n := tl.steps(&q.Selection, &s.rules[0], points, now, status)
	if tl.MoreGroups, err = divide(s); err != nil {
		return nil, err
	}
	p := &plotter{scan: s, from: tl.From, step: tl.Step, n: n, carried: map[carriedKey]*carriedStep{},
		parts: map[partKey]bool{}}
	if err := p.draw(); err != nil {
		return nil, err
	}
	for g, line := range p.lines {
		if line != nil {
			tl.Groups = append(tl.Groups, TimelineGroup{Name: s.groups.names[g], Values: line.values()})
		}
	}
	slices.SortFunc(tl.Groups, func(a, b TimelineGroup) int { return strings.Compare(a.Name, b.Name) })
	if tl.Groups == nil {
		tl.Groups = []TimelineGroup{{Values: p.line(0).values()}}
	}
	return tl, v.Memory.Keep(pointBytes * n * len(tl.Groups))
}

// steps sets the start of the timeline and the length of its steps, and returns their number.
func (tl *Timeline) steps(sel *model.Selection, of *rule, points int, now time.Time,
	status *Status) int {
	from, until := sel.From, sel.Until
	if from == 0 || until == 0 {
		first, last := int64(math.MaxInt64), int64(0)
		for _, t := range []*tally{&of.others, &of.baselines} {
			if t.profiles > 0 {
				first, last = min(first, t.begins), max(last, t.last)
			}
		}
		if from == 0 {
			from = max(first, now.Add(-2*status.Window).UnixNano())
			if last == 0 {
				from = now.Add(-status.Window).UnixNano()
			}
		}
		if until == 0 {
			until = max(last, now.UnixNano())
		}
	}
	resolution := max(int64(status.Resolution), 1)
	// Sums of two such times do not overflow.
	from, until = min(from, math.MaxInt64/2-resolution-1), min(until, math.MaxInt64/2-resolution)
	until = max(until, from+1)
	points = min(max(points, 1), maxPoints)
	step := (until - from) / int64(points)
	step = max(resolution, (step+resolution-1)/resolution*resolution)
	tl.From, tl.Step = from/step*step, step
	return int(min((until-tl.From+step-1)/step, maxPoints+1))
}

// profileGroup is what a profile has of a group.
type profileGroup struct {
	*weightedProfile
	group int
}

// plotter draws profiles into lines, one for each group.
type plotter struct {
	*scan
	from, step int64
	n          int
	lines      []*line
	// own has what the current series adds, by group; only for gauges.
	series *selectedSeries
	own    map[int]*ownLine
	// carried are the steps of series of gauges to which further blocks may add, and parts the states in several parts of
	// which there may be more.
	carried map[carriedKey]*carriedStep
	parts   map[partKey]bool
}

type partKey struct {
	id    model.SeriesID
	group int
	start int64
}

type carriedKey struct {
	id          model.SeriesID
	group, step int
}

// carriedStep is the sum of gauges × the time for which they hold in a step, and the sum of these times.
type carriedStep struct{ sum, time float64 }

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

// ownLine has these for all steps. It begins in step first and ends in last.
type ownLine struct {
	steps       []carriedStep
	first, last int
	isBetween   bool
}

func (p *plotter) line(group int) *line {
	for len(p.lines) <= group {
		p.lines = append(p.lines, nil)
	}
	if p.lines[group] == nil {
		_ = p.memory.Grow(pointBytes * p.n) // there are few groups: instance checks
		p.lines[group] = &line{newBins(p.from, p.step, p.n), make([]int32, p.n+1)}
	}
	return p.lines[group]
}

// draw adds all profiles to the lines.
func (p *plotter) draw() error {
	p.own, p.reads = map[int]*ownLine{}, true
	withDictionary := len(p.keys) > 0 || p.sel.GroupBy != ""
	err := p.eachPart(withDictionary, func(of []selectedSeries) error {
		err := p.eachBatch(of, p.plot)
		p.endSeries()
		p.endPart()
		return err
	})
	p.drawCarried(math.MaxInt64)
	return err
}

func (p *plotter) plot(list []weightedProfile) error {
	sums, err := p.sums(list)
	if err != nil {
		return err
	}
	for i := range list {
		w := &list[i]
		if w.series != p.series {
			p.endSeries()
			p.series = w.series
		}
		if w.Flags&model.IsBaseline != 0 || !p.shows(w.Start, w.end) {
			continue
		}
		factor := 1.0
		if p.rules[0].isTime {
			factor = float64(p.part.Meta(&w.Profile).Period)
		}
		if p.whole(w) {
			p.add(w, p.groups.number(w.series.group), factor*float64(w.Total))
			continue
		}
		for group := range p.groups.names {
			if value, has := sums[profileGroup{w, group}]; has {
				p.add(w, group, factor*value)
			}
		}
	}
	return nil
}

func (p *plotter) add(w *weightedProfile, group int, value float64) {
	if w.Values == kind.Gauge {
		p.state(group, w, value)
		return
	}
	start, end := w.Start, w.end
	if p.sel.Cuts(&w.Profile) { // the value is that of this part alone
		start, end, _ = p.sel.Overlap(start, end)
	}
	p.spread(group, start, end, value)
}

// sums returns the values of profiles that depend on their samples, by group.
func (p *plotter) sums(list []weightedProfile) (map[profileGroup]float64, error) {
	var parts []*weightedProfile
	for i := range list {
		if !p.whole(&list[i]) {
			parts = append(parts, &list[i])
		}
	}
	sums := map[profileGroup]float64{}
	return sums, p.samples(parts, model.ColumnsWanted{}, func(w *weightedProfile, group int, c *model.Columns) error {
		sums[profileGroup{w, group}] += c.Sum()
		return nil
	})
}

// shows reports whether a time from start to end has a part in the timeline.
func (p *plotter) shows(start, end int64) bool {
	return end >= p.from && start <= p.from+p.step*int64(p.n)
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

// state records a gauge for endSeries.
func (p *plotter) state(group int, w *weightedProfile, value float64) {
	start, end := max(w.Start, p.from), min(w.end, p.from+p.step*int64(p.n))
	if start >= end {
		return
	}
	own := p.own[group]
	if own == nil {
		_ = p.memory.Grow(pointBytes * p.n) // the batch checks
		own = &ownLine{steps: make([]carriedStep, p.n), first: p.n}
		p.own[group] = own
	}
	own.first, own.last = min(own.first, int((start-p.from)/p.step)), max(own.last, int((end-1-p.from)/p.step))
	own.isBetween = own.isBetween || w.isBetween
	isPart := false // the time of the parts of one state counts once
	if w.isPart {
		key := partKey{w.series.ID, group, w.Start}
		if isPart = p.parts[key]; !isPart {
			_ = p.memory.Grow(carriedBytes) // the batch checks
			p.parts[key] = true
		}
	}
	for start < end {
		i := (start - p.from) / p.step
		next := min(p.from+(i+1)*p.step, end)
		held := float64(next - start)
		own.steps[i].sum += value * held
		if !isPart {
			own.steps[i].time += held
		}
		start = next
	}
}

func (c *carriedStep) add(sum, time float64) { c.sum, c.time = c.sum+sum, c.time+time }

// endSeries adds the gauges of the current series to the lines. To a step at its start or end, another block may add,
// which is carried.
func (p *plotter) endSeries() {
	for group, own := range p.own {
		for i := own.first; i <= own.last; i++ {
			step := own.steps[i]
			if step == (carriedStep{}) {
				continue
			}
			if i > own.first && i < own.last && !own.isBetween {
				p.mean(group, i, step)
				continue
			}
			key := carriedKey{p.series.ID, group, i}
			known := p.carried[key]
			if known == nil {
				_ = p.memory.Grow(carriedBytes) // the batch checks
				known = &carriedStep{}
				p.carried[key] = known
			}
			known.add(step.sum, step.time)
		}
	}
	p.memory.Release(pointBytes * p.n * len(p.own))
	clear(p.own)
	p.series = nil
}

// mean adds the mean of a series' gauges over the time for which they hold in a step.
func (p *plotter) mean(group, i int, step carriedStep) {
	line := p.line(group)
	line.direct[i] += step.sum / step.time
	line.known[i]++
	line.known[i+1]--
}

// endPart draws what was carried to steps that end before all blocks that follow begin.
func (p *plotter) endPart() {
	begin := int64(math.MaxInt64)
	for _, b := range p.view.Blocks[slices.Index(p.view.Blocks, p.part.block)+1:] {
		if start, _, ok := b.Span(""); ok {
			begin = min(begin, start)
		}
	}
	p.drawCarried(begin)
	known := len(p.parts)
	maps.DeleteFunc(p.parts, func(key partKey, _ bool) bool { return key.start < begin })
	p.memory.Release(carriedBytes * (known - len(p.parts)))
}

func (p *plotter) drawCarried(until int64) {
	var done []carriedKey
	for key := range p.carried {
		if p.from+p.step*int64(key.step+1) <= until {
			done = append(done, key)
		}
	}
	// In the order of the map, sums would be rounded in another way each time.
	slices.SortFunc(done, func(a, b carriedKey) int {
		return cmp.Or(cmp.Compare(a.step, b.step), slices.Compare(a.id[:], b.id[:]))
	})
	for _, key := range done {
		p.mean(key.group, key.step, *p.carried[key])
		delete(p.carried, key)
	}
	p.memory.Release(carriedBytes * len(done))
}

// carriedBytes is the memory of a carried step, or of a state in parts.
const carriedBytes = 160
