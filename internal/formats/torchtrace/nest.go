// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package torchtrace

import (
	"cmp"
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
	numProfiles
)

var profileTypes = [numProfiles]events.Profile{
	{Sample: events.Type{Name: "gpu_time", Unit: "nanoseconds"}, Shape: compact.Shape{Values: true, Timestamps: true}},
	{Sample: events.Type{Name: "cpu_time", Unit: "nanoseconds"}, Shape: compact.Shape{Values: true, Timestamps: true}},
	{Sample: events.Type{Name: "gpu_launch_delay", Unit: "nanoseconds"}, Shape: compact.Shape{Values: true}},
	{Sample: events.Type{Name: "allocated_space", Unit: "bytes"}, Period: gpuMemory,
		Shape: compact.Shape{Values: true, Timestamps: true}},
	{Sample: events.Type{Name: "freed_space", Unit: "bytes"}, Period: gpuMemory,
		Shape: compact.Shape{Values: true, Timestamps: true}},
}

var gpuMemory = events.Type{Name: "gpu_memory", Unit: "bytes"}

const (
	// maxDepth is the largest number of frames of a stack: what is deeper counts for what called it.
	maxDepth = 1024
	// All stacks together may have minFrames + framesPerByte × the length of the trace. Events have 200 bytes and more.
	minFrames     = 64 << 10
	framesPerByte = 1
	noList        = -1
)

// thread is a thread of the processor, or a stream. ends are those of spans of which begin and end are events of their
// own.
type thread struct {
	process, id int64
	name        string
	spans       []span
	ends        []int64
}

// span is something that a thread did, or with an end equal to its start an allocation.
type span struct {
	start, end int64
	// id is the correlation id of a launch, the external id of an op, the bytes of an allocation.
	id     int64
	frame  int32
	list   int32 // of decoder.lists, or noList
	is     category
	isOpen bool // its end is one of thread.ends
}

// open is a span that has begun. Its frames are path[:frames].
type open struct {
	span
	frames    int
	hasPython bool
	stack     dictionary.StackIndex // or unknown
	from      int64                 // what is before is accounted for
}

const unknown dictionary.StackIndex = -1

// openBytes is the memory of a span that has begun, in a slice that grows.
const openBytes = 2 * int(unsafe.Sizeof(open{}))

// walker goes over a thread in the order of time.
type walker struct {
	*decoder
	thread *thread
	stack  []open
	path   []int32 // from the root
	leaf   []int32 // scratch: from the leaf
	sets   map[int64]dictionary.AttributeSetIndex
}

// order sorts the spans so that what encloses others comes first, and gives ends to those that are open.
func (t *thread) order() {
	byTime := func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.is, b.is))
	}
	slices.SortStableFunc(t.spans, byTime)
	if len(t.ends) == 0 {
		return
	}
	slices.Sort(t.ends)
	var begun []*span
	next := 0
	end := func(until int64) {
		for ; next < len(t.ends) && t.ends[next] <= until; next++ {
			if n := len(begun); n > 0 {
				begun[n-1].end = max(begun[n-1].start, t.ends[next])
				begun = begun[:n-1]
			}
		}
	}
	for i := range t.spans {
		if s := &t.spans[i]; s.isOpen {
			end(s.start)
			begun = append(begun, s)
		}
	}
	end(maxNanos)
	slices.SortStableFunc(t.spans, byTime)
}

// walk adds the samples of a thread, and finds the stacks of launches.
func (w *walker) walk(t *thread) error {
	w.thread, w.stack, w.path, w.sets = t, w.stack[:0], w.path[:0], map[int64]dictionary.AttributeSetIndex{}
	t.order()
	for i := range t.spans {
		if err := w.b.Check(w.keptBytes() + openBytes*len(w.stack)); err != nil {
			return err
		}
		s := &t.spans[i]
		w.closeUntil(s.start)
		w.begin(s)
	}
	w.closeUntil(maxNanos)
	return nil
}

// closeUntil ends the spans that end by a time.
func (w *walker) closeUntil(until int64) {
	for n := len(w.stack); n > 0 && w.stack[n-1].end <= until; n-- {
		last := &w.stack[n-1]
		w.own(last, last.end)
		ended := max(last.from, last.end)
		w.stack = w.stack[:n-1]
		if n > 1 {
			above := &w.stack[n-2]
			above.from = max(above.from, ended)
		}
	}
	if n := len(w.stack); n > 0 {
		w.own(&w.stack[n-1], until)
	}
}

// own adds what a span did itself, until the next one begins.
func (w *walker) own(o *open, until int64) {
	if until > o.end {
		until = o.end
	}
	if until <= o.from {
		return
	}
	w.observe(cpuTime, w.stackOf(o), w.threadAttributes(w.stepAt(o.start)), until, until-o.from)
	o.from = until
}

// begin begins a span, or adds an allocation.
func (w *walker) begin(s *span) {
	o := open{span: *s, stack: unknown, from: s.start}
	if n := len(w.stack); n > 0 {
		o.frames, o.hasPython = w.stack[n-1].frames, w.stack[n-1].hasPython
		w.path = w.path[:o.frames]
	} else {
		w.path = w.path[:0]
	}
	if s.list != noList && !o.hasPython {
		w.push(w.lists[s.list]...)
	}
	o.hasPython = o.hasPython || s.list != noList || s.is == python
	if s.is != memory {
		w.push(s.frame)
	}
	o.frames = len(w.path)
	switch s.is {
	case memory:
		p, size := allocSpace, s.id
		if size < 0 {
			p, size = freeSpace, -size
		}
		w.observe(p, w.stackOf(&o), w.threadAttributes(w.stepAt(s.start)), s.start, size)
		return
	case runtime:
		w.launchesFrom(w.launches, &o)
	case op:
		w.launchesFrom(w.ops, &o)
	}
	w.stack = append(w.stack, o)
}

// launchesFrom keeps the stack of a span by its id, if the GPU's work asks for it.
func (w *walker) launchesFrom(by map[int64]launch, o *open) {
	if known, isWanted := by[o.id]; isWanted && !known.isSet && o.id != none {
		by[o.id] = launch{start: o.start, stack: w.stackOf(o), isSet: true}
	}
}

func (w *walker) push(frames ...int32) {
	if len(w.path)+len(frames) > maxDepth {
		w.b.Stats.Truncated++
		return
	}
	w.path = append(w.path, frames...)
}

// stackOf interns the stack of the span that is begun last.
func (w *walker) stackOf(o *open) dictionary.StackIndex {
	if o.stack == unknown {
		w.leaf = append(w.leaf[:0], w.path[:o.frames]...)
		slices.Reverse(w.leaf)
		o.stack = w.intern(w.leaf)
	}
	return o.stack
}

// intern interns frames, leaf first. Beyond the bound of all stacks only the leaf is left.
func (d *decoder) intern(frames []int32) dictionary.StackIndex {
	if d.framesLeft -= len(frames); d.framesLeft < 0 {
		d.b.Stats.Truncated++
		frames = frames[:min(len(frames), 1)]
	}
	return d.b.Dict.Stacks.Intern(frames)
}

// profile returns one of the profiles, which it adds if it is not there yet.
func (d *decoder) profile(p int) compact.ProfileIndex {
	if d.profiles[p] == 0 {
		d.profiles[p] = d.b.NewProfile(d.scope, profileTypes[p]) + 1
	}
	return d.profiles[p] - 1
}

func (d *decoder) observe(p int, stack dictionary.StackIndex, set dictionary.AttributeSetIndex, at, value int64) {
	d.b.Event(d.profile(p), compact.Identity{Stack: stack, Attributes: set},
		compact.Observation{Timestamp: uint64(at), Value: value})
}

// threadAttributes returns those of the thread in a step.
func (w *walker) threadAttributes(step int64) dictionary.AttributeSetIndex {
	set, ok := w.sets[step]
	if ok {
		return set
	}
	list := w.attributes[:0]
	if w.thread.process != none {
		list = append(list, w.b.IntAttribute(events.AttributeProcessID, w.thread.process))
	}
	if w.thread.id != none {
		list = append(list, w.b.IntAttribute(events.AttributeThreadID, w.thread.id))
	}
	if w.thread.name != "" {
		list = append(list, w.b.Attribute(events.AttributeThreadName, dictionary.StringValue(w.thread.name)))
	}
	if step != none {
		list = append(list, w.b.IntAttribute(AttributeStep, step))
	}
	w.attributes = list
	set = w.b.Dict.AttributeSets.Intern(list)
	w.sets[step] = set
	return set
}

// stepAt returns the number of the step at a time, or none.
func (d *decoder) stepAt(t int64) int64 {
	at, _ := slices.BinarySearchFunc(d.steps, t+1, func(s step, t int64) int { return cmp.Compare(s.start, t) })
	if at > 0 && t < d.steps[at-1].end {
		return d.steps[at-1].number
	}
	return none
}

// finish adds the samples of all events, whose clock is the same one.
func (d *decoder) finish(anchor events.Anchor) error {
	if !d.isKnown {
		return ErrNotTrace
	}
	d.framesLeft = minFrames + framesPerByte*int(d.scan.read)
	slices.SortFunc(d.steps, func(a, b step) int { return cmp.Compare(a.start, b.start) })
	d.scope = d.b.NewScope()
	w := walker{decoder: d}
	for _, t := range d.list {
		if err := w.walk(t); err != nil {
			return err
		}
	}
	if err := d.addWork(); err != nil {
		return err
	}
	d.setClock(anchor)
	return nil
}

// addWork adds the samples of the GPU, under the stacks of their launches.
func (d *decoder) addWork() error {
	var stack []int32
	for i := range d.work {
		if err := d.b.Check(d.keptBytes()); err != nil {
			return err
		}
		w := &d.work[i]
		from := d.launches[w.correlation]
		isLaunch := from.isSet
		if !isLaunch {
			from = d.ops[w.external]
		}
		stack = append(stack[:0], w.frame)
		set := w.attributes
		if from.isSet {
			stack = append(stack, d.b.Dict.Stacks.At(from.stack)...)
			set = d.inStep(set, d.stepAt(from.start))
		}
		at := d.intern(stack)
		d.observe(gpuTime, at, set, w.end, w.end-w.start)
		if isLaunch && w.start > from.start {
			d.b.Observe(d.profile(launchDelay), compact.Identity{Stack: at, Attributes: set},
				compact.Observation{Value: w.start - from.start})
		}
	}
	return nil
}

// inStep adds the number of a step to attributes.
func (d *decoder) inStep(set dictionary.AttributeSetIndex, step int64) dictionary.AttributeSetIndex {
	if step == none {
		return set
	}
	d.attributes = append(append(d.attributes[:0], d.b.Dict.AttributeSets.At(set)...),
		d.b.IntAttribute(AttributeStep, step))
	return d.b.Dict.AttributeSets.Intern(d.attributes)
}

// setClock sets the times of all profiles, which are those of the whole trace, and their attributes.
func (d *decoder) setClock(anchor events.Anchor) {
	if d.first > d.last {
		return
	}
	list := d.attributes[:0]
	shift := uint64(max(d.base, 0))
	if d.base <= 0 && d.first < events.Year2000*1e9 {
		list = append(list, d.b.Dict.AttributeSets.At(d.b.ClockGuess())...)
		shift = anchor.EndNanos - min(uint64(d.last), anchor.EndNanos)
	}
	for _, a := range []struct {
		key   string
		value int64
	}{{AttributeRank, d.rank}, {AttributeWorldSize, d.worldSize}} {
		if a.value != none {
			list = append(list, d.b.IntAttribute(a.key, a.value))
		}
	}
	set := d.b.Dict.AttributeSets.Intern(list)
	for _, p := range d.profiles {
		if p > 0 {
			d.b.Header(p - 1).Attributes = set
			d.b.Widen(p-1, uint64(d.first), uint64(d.last))
		}
	}
	d.b.Shift(shift)
}
