// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package torchtrace

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

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

// open is a span that has begun. node has its stack.
type open struct {
	*span
	node      int32
	hasPython bool
}

// walker goes over a thread in the order of time.
type walker struct {
	*decoder
	time       int                          // the profile of the spans' own time
	attributes dictionary.AttributeSetIndex // of the thread
	stack      []open
	at         int64 // what is before is accounted for
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
	for i := range t.spans {
		s := &t.spans[i]
		switch n := len(begun); {
		case s.is == end && n > 0:
			begun[n-1].end = s.start
			begun = begun[:n-1]
		case s.is != end && s.end == notEnded:
			s.end = last
			begun = append(begun, s)
		}
	}
}

// walk adds the samples of a thread, and finds the callers of kernels.
func (w *walker) walk(t *thread) error {
	t.order(w.last)
	w.attributes = w.b.AddAttributes(0, w.number(events.AttributeProcessID, t.process),
		w.number(events.AttributeThreadID, t.id), t.name)
	w.at = 0
	for i := range t.spans {
		if err := w.reserve(); err != nil {
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

// begin begins a span, or adds an allocation.
func (w *walker) begin(s *span) {
	o := open{span: s, node: events.NoNode}
	if n := len(w.stack); n > 0 {
		o.node, o.hasPython = w.stack[n-1].node, w.stack[n-1].hasPython
	}
	if !o.hasPython {
		for _, frame := range slices.Backward(w.b.Dict.Stacks.At(s.callStack)) {
			o.node = w.tree.Add(o.node, frame)
			w.keptBytes += events.NodeBytes
		}
	}
	if s.is == memory {
		p, size := allocSpace, s.id
		if size < 0 {
			p, size = freeSpace, -size
		}
		set := w.b.AddAttributes(w.inStep(w.attributes, s.start), w.number(events.AttributeGPUDevice, s.external))
		w.observe(p, o.node, set, s.start, size)
		return
	}
	o.hasPython = o.hasPython || s.callStack != 0 || s.is == python
	o.node = w.tree.Add(o.node, s.frame)
	if known, isWanted := w.callers[s.is][s.id]; isWanted && known == unknown && s.id != none {
		w.callers[s.is][s.id] = caller{s.start, o.node}
	}
	w.stack, w.at = append(w.stack, o), max(w.at, s.start)
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

// inStep adds the number of the step at a time to attributes.
func (d *decoder) inStep(set dictionary.AttributeSetIndex, t int64) dictionary.AttributeSetIndex {
	at, _ := slices.BinarySearchFunc(d.steps, t+1, func(s step, t int64) int { return cmp.Compare(s.start, t) })
	if at == 0 || t >= d.steps[at-1].end {
		return set
	}
	return d.b.AddAttributes(set, d.number(AttributeStep, d.steps[at-1].number))
}

// finish adds the samples of all events, whose clock is the same one.
func (d *decoder) finish() error {
	if d.first > d.last {
		return ErrNotTrace
	}
	slices.SortFunc(d.steps, func(a, b step) int { return cmp.Compare(a.start, b.start) })
	d.scope = d.b.NewScope()
	d.tree = events.NewCallTree(d.scan.used)
	w := walker{decoder: d, time: cpuTime}
	if d.options.Spans {
		w.time = wallTime
	}
	for _, t := range d.list {
		if err := w.walk(t); err != nil {
			return err
		}
	}
	for _, t := range d.list {
		for i := range t.spans {
			if err := d.reserve(); err != nil {
				return err
			}
			if s := &t.spans[i]; s.is.isGPU() {
				d.addKernel(s)
			}
		}
	}
	d.b.Shift(uint64(max(d.base, 0)))
	d.b.SetClock()
	return nil
}

// addKernel adds the samples of a kernel, under the stack of its launch or of the op that it is of.
func (d *decoder) addKernel(s *span) {
	launch := d.callers[runtime][s.id]
	from := launch
	if launch == unknown {
		from = d.callers[op][s.external]
	}
	node, set := d.tree.Add(from.node, s.frame), d.inStep(s.attributes, from.start)
	d.observe(gpuTime, node, set, s.end, s.end-s.start)
	if launch != unknown && s.start > launch.start {
		d.observe(launchDelay, node, set, s.start, s.start-launch.start)
	}
}

// frameTypes are the values of profile.frame.type: the semantic conventions have cpython alone.
var frameTypes = [numCategories]string{
	annotation: "torch_annotation", python: "cpython", op: "torch_op", runtime: "gpu_runtime", kernel: "gpu_kernel",
	transfer: "gpu_memory",
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
	i := d.newFrame(text(name), is)
	d.frames[frameKey{string(name), is}] = i
	return i
}

// pythonName is how Python's frames are named: file(line): function. Objects have an address, which is another one in
// each process.
var (
	pythonName = regexp.MustCompile(`(?s)^(.*?)\((-?\d{1,9})\): (.*)$`)
	address    = regexp.MustCompile(` at 0x[0-9a-f]*`)
)

func (d *decoder) newFrame(name string, is category) int32 {
	var f dictionary.Function
	if is == python {
		if parts := pythonName.FindStringSubmatch(name); parts != nil {
			line, _ := strconv.ParseInt(parts[2], 10, 64)
			f.Filename, f.StartLine, name = d.b.InternString(parts[1]), max(line, 0), parts[3]
		}
		name = address.ReplaceAllLiteralString(name, "")
	}
	f.Name = d.b.InternString(name)
	return d.b.TypedFrame(f, f.StartLine, frameTypes[is])
}

// callStack interns Python frames, which are written from the leaf: name;name;.
func (d *decoder) callStack(value []byte) dictionary.StackIndex {
	if stack, ok := d.callStacks[string(value)]; ok {
		return stack
	}
	var frames []int32
	for name := range strings.SplitSeq(text(value), ";") {
		if name != "" {
			frames = append(frames, d.frame([]byte(name), python))
		}
	}
	stack := d.b.Dict.Stacks.Intern(frames)
	d.callStacks[string(value)] = stack
	d.keptBytes += entryBytes + len(value)
	return stack
}
