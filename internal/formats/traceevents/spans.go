// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package traceevents

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// The profiles, in the order in which they are written.
const (
	gpuTime = iota
	cpuTime
	launchDelay
	allocSpace
	freeSpace
	wallTime
	numProfiles
)

var (
	gpuMemory    = events.Bytes("gpu_memory")
	wall         = events.Nanoseconds("wall")
	intervals    = compact.Shape{Values: true, Timestamps: true}
	profileTypes = [numProfiles]events.Profile{
		{Sample: events.Nanoseconds("gpu_time"), Shape: intervals},
		{Sample: events.Nanoseconds("cpu_time"), Shape: intervals},
		{Sample: events.Nanoseconds("gpu_launch_delay"), Shape: compact.Shape{Values: true}},
		{Sample: events.Bytes("allocated_space"), Period: gpuMemory, Shape: intervals},
		{Sample: events.Bytes("freed_space"), Period: gpuMemory, Shape: intervals},
		{Sample: wall, Period: wall, Shape: intervals},
	}
)

// span is something that a thread or a stream did, an allocation, or the end of a span that has begun.
type span struct {
	start, end int64 // nanoseconds
	// id is the correlation id of a kernel and of a call of the runtime, the external id of an op, the bytes of an
	// allocation; external is the external id of a kernel, the device of an allocation.
	id, external int64
	frame        int32
	callStack    dictionary.StackIndex        // of Python frames
	attributes   dictionary.AttributeSetIndex // of a kernel
	is           category
}

// notEnded is the end of a span that is an event of its own.
const notEnded = maxNanos

// open is a span that has begun. node has its stack.
type open struct {
	*span
	end       int64
	node      int32
	hasPython bool
}

// A span that ends later than the one that it is in by no more than rounding is in it. Others that outlast it, such as
// collectives that are waited for elsewhere, are moved below at most maxOutlasted spans.
const rounding, maxOutlasted = 1000, 128

// The memory of what is kept: in slices that grow, and in maps, keys beside.
const (
	spanBytes   = 2*int(unsafe.Sizeof(span{})+unsafe.Sizeof(open{})) + events.NodeBytes
	callerBytes = 4 * int(unsafe.Sizeof(caller{}))
	threadBytes = 512
	entryBytes  = 96
)

// add keeps an event.
func (d *decoder) add(e *event, s span) {
	d.keptBytes += spanBytes
	t := d.thread(e)
	s.id, s.external = t.idOf(e.correlation), t.idOf(e.external)
	number, isStep := bytes.CutPrefix(inside(e.name), []byte("ProfilerStep#"))
	switch {
	case s.is == annotation && isStep:
		d.steps = append(d.steps, step{s.start, s.end, integer(number)})
		return
	case e.average != nil && s.is == other: // each of its events is in the trace, too
		return
	case e.detail != nil && s.is == other:
		e.name = fmt.Appendf(nil, `"%s %s"`, inside(e.name), inside(e.detail))
	case e.file != nil && s.is == other && string(inside(e.category)) == "py-spy":
		s.is, e.name = python, fmt.Appendf(nil, `"%s(0): %s"`, inside(e.file), inside(e.name))
	case s.is == memory:
		const processor = 0
		s.id, s.external = integer(e.size), integer(e.device)
		if text(e.name) != "[memory]" || s.id == none || s.id == 0 || integer(e.deviceType) <= processor {
			return
		}
	case s.is == op:
		s.id = s.external
	case s.is.isGPU():
		s.attributes = d.streamAttributes(e, t)
		d.callers[runtime][s.id], d.callers[op][s.external] = unknown, unknown
		d.keptBytes += callerBytes
	}
	if s.is > memory {
		s.frame = d.frame(e.name, s.is)
	}
	s.callStack = d.callStack(e.callStack)
	if s.is != end {
		d.first = min(d.first, s.start)
	}
	d.last = max(d.last, s.end)
	if phase := string(inside(e.phase)); phase == "B" || phase == "E" {
		s.end = notEnded
	}
	t.spans = append(t.spans, s)
}

// idOf returns the id that a launch and its kernel share.
func (t *thread) idOf(value []byte) int64 {
	if id := integer(value); id != none {
		return id + t.rank
	}
	return none
}

// frameKey is the name of a frame and the category of its event.
type frameKey struct {
	name string
	is   category
}

// frame interns the frame of an event, by its name as it is written.
func (d *decoder) frame(name []byte, is category) int32 {
	if i, ok := d.frames[frameKey{string(name), is}]; ok {
		return i
	}
	d.keptBytes += entryBytes + len(name)
	f := dictionary.Function{}
	if is == python {
		f = d.pythonFunction(text(name))
	} else {
		f.Name = d.b.InternString(text(name))
	}
	i := d.b.TypedFrame(f, f.StartLine, frameTypes[is])
	d.frames[frameKey{string(name), is}] = i
	return i
}

// order sorts the spans, each before those that it encloses, and matches begin events with their end events. A span
// that never ends lasts until last.
func (t *thread) order(last int64) {
	slices.SortStableFunc(t.spans, func(a, b span) int {
		byTime := cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
		if byTime != 0 || a.end == notEnded { // begin and end events of one time stay in their order
			return byTime
		}
		return cmp.Compare(a.is, b.is)
	})
	var begun []*span
	hasBegun := false
	for i := range t.spans {
		s := &t.spans[i]
		switch n := len(begun); {
		case s.is == end && n > 0:
			begun[n-1].end = s.start
			begun = begun[:n-1]
		case s.is != end && s.end == notEnded:
			s.end, hasBegun = last, true
			begun = append(begun, s)
		}
	}
	if hasBegun { // now that their ends are known
		slices.SortStableFunc(t.spans, func(a, b span) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
		})
	}
}

// walker goes over a thread in the order of time.
type walker struct {
	*decoder
	time       int                          // the profile of the spans' own time
	attributes dictionary.AttributeSetIndex // of the thread
	stack      []open
	at         int64 // what is before is accounted for
}

// addSpans adds the samples of all spans.
func (d *decoder) addSpans() error {
	slices.SortFunc(d.steps, func(a, b step) int { return cmp.Compare(a.start, b.start) })
	d.scope = d.b.NewScope()
	d.tree = events.NewCallTree(d.scan.used)
	w := walker{decoder: d, time: wallTime}
	if d.isTorch {
		w.time = cpuTime
	}
	for _, t := range d.list {
		if err := w.walk(t); err != nil {
			return err
		}
	}
	for _, t := range d.list {
		for i := range t.spans {
			if err := d.b.Check(d.keptBytes); err != nil {
				return err
			}
			if s := &t.spans[i]; s.is.isGPU() {
				d.addKernel(s)
			}
		}
	}
	return nil
}

// walk adds the samples of a thread, and finds the callers of kernels.
func (w *walker) walk(t *thread) error {
	t.order(w.last)
	w.attributes, w.at = w.attributesOf(t), 0
	for i := range t.spans {
		if err := w.b.Check(w.keptBytes); err != nil {
			return err
		}
		if s := &t.spans[i]; s.is != end && !s.is.isGPU() {
			w.until(s.start)
			w.begin(s)
		}
	}
	w.until(maxNanos)
	return nil
}

// until ends the spans that end by a time, and adds the time of each that is its own.
func (w *walker) until(t int64) {
	for n := len(w.stack) - 1; n >= 0; n-- {
		o := &w.stack[n]
		if until := min(o.end, t); until > w.at {
			w.observe(w.time, o.node, w.inStep(w.attributes, o.start), until, until-w.at)
			w.at = until
		}
		if o.end > t {
			return
		}
		w.stack = w.stack[:n]
	}
}

// begin begins a span, or adds an allocation. A span that outlasts what it begins in is there until that ends, and
// below it from then on.
func (w *walker) begin(s *span) {
	n := len(w.stack)
	o := w.openOn(n, s)
	if s.is == memory {
		w.addAllocation(s, o.node, w.attributes)
		return
	}
	if known, isWanted := w.callers[s.is][s.id]; isWanted && known == unknown && s.id != none {
		w.callers[s.is][s.id] = caller{s.start, o.node}
	}
	if n > 0 && s.end > w.stack[n-1].end+rounding {
		o.end = w.stack[n-1].end
		at := n
		for at > max(0, n-maxOutlasted) && w.stack[at-1].end < s.end {
			at--
		}
		w.stack = slices.Insert(w.stack, at, w.openOn(at, s))
		w.keptBytes += spanBytes
	}
	w.stack, w.at = append(w.stack, o), max(w.at, s.start)
}

// openOn returns a span as it is above the first n of the stack. An allocation has their node.
func (w *walker) openOn(n int, s *span) open {
	o := open{span: s, end: s.end, node: events.NoNode}
	if n > 0 {
		o.node, o.hasPython = w.stack[n-1].node, w.stack[n-1].hasPython
	}
	if !o.hasPython {
		for _, frame := range slices.Backward(w.b.Dict.Stacks.At(s.callStack)) {
			o.node = w.tree.Add(o.node, frame)
			w.keptBytes += events.NodeBytes
		}
	}
	if s.is != memory {
		o.hasPython = o.hasPython || s.callStack != 0 || s.is == python
		o.node = w.tree.Add(o.node, s.frame)
	}
	return o
}

// observe adds a sample. Its stack is only its leaf if it is too deep, or if all stacks are too large together.
func (d *decoder) observe(p int, node int32, set dictionary.AttributeSetIndex, at, value int64) {
	stack, ok := d.tree.Stack(&d.b, node)
	if !ok {
		d.b.Stats.Truncated++
		stack = d.b.Dict.Stacks.Intern([]int32{d.tree.Location(node)})
	}
	if d.profiles[p] == 0 {
		d.profiles[p] = d.newProfile(p) + 1
	}
	d.b.Event(d.profiles[p]-1, compact.Identity{Stack: stack, Attributes: set},
		compact.Observation{Timestamp: uint64(at), Value: value})
}

// newProfile adds a profile, which is of the whole trace.
func (d *decoder) newProfile(p int) compact.ProfileIndex {
	to := d.b.NewProfile(d.scope, profileTypes[p])
	d.b.SetWindow(to, uint64(d.first), uint64(d.last))
	d.b.Header(to).Attributes = d.b.AddAttributes(0, d.number(AttributeRank, d.rank),
		d.number(AttributeWorldSize, d.worldSize))
	return to
}
