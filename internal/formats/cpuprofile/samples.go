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
)

// samples returns the node and the time of all samples, in the order in which they were recorded. The first delta is
// the time from the profile's start to the first sample.
func (p *Profile) samples() iter.Seq2[int32, float64] {
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
func (p *Profile) order() (w window) {
	slices.SortStableFunc(p.chunks, func(a, b chunk) int { return cmp.Compare(a.at, b.at) })
	if len(p.chunks) > 0 && len(p.chunks[0].timestamps) > 0 { // a profile of old, whose start and end are in seconds
		p.start, p.end = p.chunks[0].timestamps[0], 0
	} else if len(p.chunks) > 0 && p.start == 0 && p.chunks[0].at > 0 {
		p.start = p.chunks[0].at // of an event that was written after its last sample
		for _, delta := range p.chunks[0].deltas {
			p.start -= delta
		}
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

// AddSamples adds the samples of all profiles, which were read from so many bytes. zero is the Unix time, in
// nanoseconds, at which their clock was 0, or 0 if that is unknown.
func (r *Reader) AddSamples(plainBytes int, zero uint64) error {
	r.stacks = events.NewCallTree(plainBytes)
	r.leaveOutRests()
	scope := r.b.NewScope()
	first, last := math.Inf(1), math.Inf(-1)
	windows := make([]window, len(r.profiles))
	for i, p := range r.profiles {
		if !p.isHeap {
			windows[i] = p.order()
			first, last = min(first, windows[i].earliest), max(last, windows[i].latest)
		}
	}
	isTimed := first >= 0 && last < 1<<52 // a number, and of a clock in microseconds
	for i, p := range r.profiles {
		err := r.fillStacks(&p.tree)
		switch {
		case err != nil:
		case windows[i].number == 0:
			err = r.addNodes(scope, p)
		case !isTimed:
			r.b.Stats.Dropped++
		default:
			err = r.addSamples(scope, p, &windows[i], first)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case isTimed && first >= events.Year2000*1e6: // a Unix time
		r.b.Shift(uint64(first) * 1000)
	case isTimed && first > 0 && zero > 0:
		r.b.Shift(zero + uint64(first)*1000)
	}
	r.b.SetClock()
	return nil
}

// leaveOutRests removes profiles without nodes: a trace can begin within a profile.
func (r *Reader) leaveOutRests() {
	r.profiles = slices.DeleteFunc(r.profiles, func(p *Profile) bool {
		if len(p.nodes) > 0 {
			return false
		}
		for i := range p.chunks {
			r.b.Stats.Dropped += len(p.chunks[i].samples)
		}
		return true
	})
}

// state is a state of the machine on top of the stack of a node.
type state struct{ node, before int32 }

// addSamples adds the samples of a profile, at times since first.
func (r *Reader) addSamples(scope compact.ScopeIndex, p *Profile, w *window, first float64) error {
	to := r.b.NewProfile(scope, events.Profile{
		Sample: events.Count("samples"), Period: cpu, Every: w.period(p.start),
		Shape: compact.Shape{Timestamps: true},
	})
	nanos := func(t float64) uint64 { return uint64(max(0, t-first) * 1000) }
	r.b.SetWindow(to, nanos(w.earliest), nanos(w.latest))
	states := map[state]int32{}
	before := int32(none)
	for at, t := range p.samples() {
		if err := r.b.Check(0); err != nil {
			return err
		}
		if at == none {
			r.b.Stats.Dropped++
			continue
		}
		n, node := &p.nodes[at], p.stackNode(at)
		switch n.kind {
		case idle:
			r.b.Stats.Filtered++
			before = none
			continue
		case above:
			key, isKnown := state{at, before}, false
			if node, isKnown = states[key]; !isKnown {
				node = r.stacks.Add(p.stackNode(before), n.location)
				states[key] = node
				if err := r.b.Grow(events.NodeBytes + stateBytes); err != nil {
					return err
				}
			}
		}
		stack, ok := r.stacks.Stack(r.b, node)
		if !ok {
			r.b.Stats.Dropped++
			continue
		}
		if n.kind == ordinary {
			before = at
		}
		r.b.Event(to, compact.Identity{Stack: stack, Attributes: p.Attributes}, compact.Observation{Timestamp: nanos(t)})
	}
	return nil
}

// stateBytes is the memory of a state in a map.
const stateBytes = 48

var cpu = events.Nanoseconds("cpu")

// addNodes adds a profile that has no samples, but values at its nodes: how many there were, or in a heap profile the
// bytes that the functions allocated and that are still in use.
func (r *Reader) addNodes(scope compact.ScopeIndex, p *Profile) error {
	sum := 0.0
	for i := range p.nodes {
		sum += p.nodes[i].value
	}
	if !p.isHeap && !(sum >= 1 && sum < 1<<52) {
		return nil
	}
	made := events.Profile{Sample: events.Bytes("inuse_space"), Period: events.Bytes("space")}
	if !p.isHeap {
		made.Sample, made.Period = events.Count("samples"), cpu
		made.Every = int64(max(0, (p.end-p.start)/sum*1000))
	}
	made.Shape.Values = true
	to := r.b.NewProfile(scope, made)
	if !p.isHeap {
		r.b.SetWindow(to, 0, uint64(max(0, min(p.end-p.start, 1<<52))*1000))
	}
	for i := range p.nodes {
		if err := r.b.Check(0); err != nil {
			return err
		}
		n := &p.nodes[i]
		stack, ok := r.stacks.Stack(r.b, p.stackNode(int32(i)))
		switch {
		case n.value == 0:
		case n.kind == idle:
			r.b.Stats.Filtered += int(n.value)
		case !ok || !(n.value > 0 && n.value < math.MaxInt64):
			r.b.Stats.Dropped++
		default:
			r.b.Stats.Events++
			r.b.Observe(to, compact.Identity{Stack: stack, Attributes: p.Attributes}, compact.Observation{Value: int64(n.value)})
		}
	}
	return nil
}
