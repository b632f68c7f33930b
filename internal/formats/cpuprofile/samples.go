// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package cpuprofile

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// samples returns the node and the time of all samples, in the order in which they were recorded. The first delta is
// the time from the profile's start to the first sample.
func (p *profile) samples() iter.Seq2[int32, float64] {
	return func(yield func(int32, float64) bool) {
		at := p.start
		for i := range p.chunks {
			c := &p.chunks[i]
			for k, id := range c.samples {
				switch {
				case k < len(c.timestamps):
					at = c.timestamps[k]
				case k < len(c.deltas):
					at += c.deltas[k]
				}
				if !yield(p.lookup(id), at) {
					return
				}
			}
		}
	}
}

// window is when the samples of a profile were taken, in microseconds.
type window struct {
	number           int
	first, last      float64 // sample
	earliest, latest float64
}

// order brings the samples of a profile into their order, and returns their window.
func (p *profile) order() (w window) {
	slices.SortStableFunc(p.chunks, func(a, b chunk) int { return cmp.Compare(a.at, b.at) })
	if len(p.chunks) > 0 && len(p.chunks[0].timestamps) > 0 { // a profile of old, whose start and end are in seconds
		p.start, p.end = p.chunks[0].timestamps[0], 0
	}
	w.earliest, w.latest = p.start, max(p.start, p.end)
	for _, at := range p.samples() {
		if w.number++; w.number == 1 {
			w.first = at
		}
		w.last = at
		w.earliest, w.latest = min(w.earliest, at), max(w.latest, at)
	}
	return w
}

// period returns the mean time between two samples, or if there is only one, the time from start to it. Times can be
// out of order.
func (w *window) period(start float64) int64 {
	if w.number == 0 {
		return 0
	}
	length, intervals := w.first-start, 1
	if w.number > 1 {
		length, intervals = w.last-w.first, w.number-1
	}
	return int64(max(0, length/float64(intervals)*1000))
}

// addProfiles adds the samples of all profiles, whose clocks are the same one.
func (d *decoder) addProfiles(anchor events.Anchor) error {
	scope := d.b.NewScope()
	first, last := math.Inf(1), math.Inf(-1)
	windows := make([]window, len(d.profiles))
	for i, p := range d.profiles {
		if !p.isHeap {
			windows[i] = p.order()
			first, last = min(first, windows[i].earliest), max(last, windows[i].latest)
		}
	}
	isTimed := first >= 0 && last < 1<<52 // a number, and of a clock in microseconds
	for i, p := range d.profiles {
		switch {
		case p.isHeap:
		case windows[i].number == 0:
			if err := d.addHits(scope, p); err != nil {
				return err
			}
		case !isTimed:
			d.b.Stats.Dropped++
		default:
			if err := d.addProfile(scope, p, windows[i].period(p.start), first); err != nil {
				return err
			}
		}
	}
	if isTimed {
		d.b.Shift(d.begin(first, last, anchor))
	}
	for _, p := range d.profiles {
		if p.isHeap {
			if err := d.addHeap(scope, p, anchor); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin returns the Unix time, in nanoseconds, of the first moment.
func (d *decoder) begin(first, last float64, anchor events.Anchor) uint64 {
	length := uint64((last - first) * 1000)
	switch {
	case first >= events.Year2000*1e6: // a Unix time
		return uint64(first) * 1000
	case d.began.Unix() >= events.Year2000 && d.began.Unix() < events.Year2100 && d.firstEvent > 0 &&
		first >= d.firstEvent:
		return uint64(d.began.UnixNano()) + uint64((first-d.firstEvent)*1000)
	}
	d.b.GuessClock()
	if anchor.EndNanos <= length {
		return 0
	}
	return anchor.EndNanos - length
}

// stackKey identifies a stack: its node, and the node of the previous stack if it is on top of that.
type stackKey struct{ node, before int32 }

// addProfile adds the samples of a profile, at times since first.
func (d *decoder) addProfile(scope compact.ScopeIndex, p *profile, period int64, first float64) error {
	cpu := events.Type{Name: "cpu", Unit: "nanoseconds"}
	to := d.b.NewProfile(scope, events.Profile{
		Sample: events.Type{Name: "samples", Unit: "count"}, Period: cpu, Every: period,
		Shape: compact.Shape{Timestamps: true},
	})
	attributes := d.attributesOf(p)
	stacks := map[stackKey]dictionary.StackIndex{}
	before := int32(none)
	for at, t := range p.samples() {
		if err := d.b.Check(0); err != nil {
			return err
		}
		if at == none {
			d.b.Stats.Dropped++
			continue
		}
		n := &p.nodes[at]
		if n.kind == idle {
			d.b.Stats.Filtered++
			before = none
			continue
		}
		key := stackKey{node: at, before: none}
		if n.kind == above {
			key.before = before
		}
		stack, ok := stacks[key]
		if !ok {
			stack = d.stackOf(&p.tree, key.node, key.before)
			stacks[key] = stack
		}
		if stack == unreadable {
			d.b.Stats.Dropped++
			continue
		}
		if n.kind == ordinary {
			before = at
		}
		d.b.Event(to, compact.Identity{Stack: stack, Attributes: attributes},
			compact.Observation{Timestamp: uint64((t - first) * 1000)})
	}
	if p.end > 0 {
		d.b.Widen(to, uint64(max(0, p.start-first)*1000), uint64(max(0, p.end-first)*1000))
	}
	return nil
}

// addHits adds a profile that has no samples, but counts them at its nodes.
func (d *decoder) addHits(scope compact.ScopeIndex, p *profile) error {
	hits := 0.0
	for i := range p.nodes {
		hits += p.nodes[i].hits
	}
	if !(hits >= 1 && hits < 1<<52) {
		return nil
	}
	cpu := events.Type{Name: "cpu", Unit: "nanoseconds"}
	to := d.b.NewProfile(scope, events.Profile{
		Sample: events.Type{Name: "samples", Unit: "count"}, Period: cpu, Every: int64(max(0, (p.end-p.start)/hits*1000)),
		Shape: compact.Shape{Values: true},
	})
	attributes := d.attributesOf(p)
	for i := range p.nodes {
		if err := d.b.Check(0); err != nil {
			return err
		}
		n := &p.nodes[i]
		if n.hits < 1 {
			continue
		}
		if n.kind == idle {
			d.b.Stats.Filtered += int(n.hits)
			continue
		}
		stack := d.stackOf(&p.tree, int32(i), none)
		if stack == unreadable {
			d.b.Stats.Dropped++
			continue
		}
		d.b.Stats.Events++
		d.b.Observe(to, compact.Identity{Stack: stack, Attributes: attributes}, compact.Observation{Value: int64(n.hits)})
	}
	d.b.SetWindow(to, 0, uint64(max(0, min(p.end-p.start, 1<<52))*1000))
	return nil
}

func (d *decoder) attributesOf(p *profile) dictionary.AttributeSetIndex {
	if !p.isOfBrowser {
		return 0
	}
	attributes := []int32{d.b.IntAttribute(events.AttributeProcessID, p.process),
		d.b.IntAttribute(events.AttributeThreadID, p.thread)}
	if name := d.threadNames[threadKey{p.process, p.thread}]; name != "" {
		attributes = append(attributes, d.b.StringAttribute(events.AttributeThreadName, name))
	}
	return d.b.Dict.AttributeSets.Intern(attributes)
}
