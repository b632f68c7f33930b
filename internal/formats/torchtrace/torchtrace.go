// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package torchtrace reads Chrome's trace events: the traces of PyTorch's profiler, as export_chrome_trace, Dynolog and
// vLLM write them, and the spans of any other tool. It returns, in one scope:
//
//	gpu_time/nanoseconds          kernels, copies and fills of memory: when they ran, under the launch and what called it
//	cpu_time/nanoseconds          ops, Python functions and calls of the runtime: the time that is their own, waiting included
//	gpu_launch_delay/nanoseconds  from the beginning of the launch to that of the kernel
//	gpu_memory                    allocated_space/bytes and freed_space/bytes of the allocator, if profile_memory was on
//	wall/nanoseconds              of another tool: the time of spans that is their own
//
// Decode reads the events as a stream, in any order, and keeps a few numbers of each in a span of its thread or stream.
// Then walk goes over the spans of each thread in the order of time, which is how they nest, and addKernel puts those
// of the streams under the stacks of their launches (nest.go). Times are microseconds since what the trace states, or
// Unix time, or end at the anchor.
package torchtrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Attributes of profiles and samples.
const (
	// AttributeRank and AttributeWorldSize are those of the process in a distributed run.
	AttributeRank      = "torch.rank"
	AttributeWorldSize = "torch.world_size"
	// AttributeStep is the number of the profiler's step, without which each step would have a graph of its own.
	AttributeStep = "torch.profiler.step"
	// AttributeGrid and AttributeBlock are the size of a launch, as x,y,z.
	AttributeGrid  = "gpu.grid"
	AttributeBlock = "gpu.block"
)

// Options configure Decode.
type Options struct {
	events.Options
	// LaunchSizes adds AttributeGrid and AttributeBlock to samples of kernels.
	LaunchSizes bool
	// Spans reads the trace of another tool: the events X, B and E of any category. Its list of events may break off.
	Spans bool
	// ReaderBytes is the memory that the reader of the trace takes.
	ReaderBytes int
}

// ErrNotTrace is the error for a document without events of PyTorch, or without spans.
var ErrNotTrace = errors.New("there are no events of PyTorch's profiler in the trace")

// Decode returns the profiles of a trace of which r has the plain JSON.
func Decode(r io.Reader, options Options) (pprofile.Profiles, events.Stats, error) {
	if options.Spans {
		r = io.MultiReader(r, strings.NewReader("]"))
	}
	d := newDecoder(r, options)
	return d.b.Run(options.Options, firstBufferBytes+options.ReaderBytes, 0, func() error {
		if err := d.read(); err != nil {
			return fmt.Errorf("read JSON: %w", err)
		}
		return d.finish()
	})
}

func newDecoder(r io.Reader, options Options) *decoder {
	d := &decoder{
		scan: newScanner(r), options: options, frames: map[frameKey]int32{}, callStacks: map[string]dictionary.StackIndex{},
		rank: none, worldSize: none, first: maxNanos, threads: map[threadKey]*thread{},
	}
	d.callers[runtime], d.callers[op] = map[int64]caller{}, map[int64]caller{}
	e := &d.event
	d.fields = map[string]*[]byte{"ph": &e.phase, "cat": &e.category, "name": &e.name, "pid": &e.process,
		"tid": &e.thread, "ts": &e.time, "dur": &e.length, "args": &e.args}
	d.args = map[string]*[]byte{
		"correlation": &e.correlation, "External id": &e.external, "external id": &e.external, "Call stack": &e.callStack,
		"device": &e.device, "Device Id": &e.device, "Device Type": &e.deviceType, "stream": &e.stream, "Bytes": &e.size,
		"grid": &e.grid, "block": &e.block, "name": &e.threadName, "detail": &e.detail, "avg ms": &e.average,
		"filename": &e.file,
	}
	return d
}

// category is what an event is.
type category uint8

const (
	ignored category = iota
	end              // of a span whose beginning and end are events of their own
	memory
	other // of another tool
	annotation
	python
	op
	runtime
	kernel
	transfer
	numCategories
)

func (c category) isGPU() bool { return c >= kernel }

// categories are Kineto's names of activities, those of its earlier versions included.
var categories = map[string]category{
	"cpu_op": op, "Operator": op, "operator": op, "hpu_op": op,
	"python_function": python, "Python function": python, "user_annotation": annotation,
	"cuda_runtime": runtime, "cuda_driver": runtime, "Runtime": runtime, "runtime": runtime, "hip_runtime": runtime,
	"xpu_runtime": runtime, "xpu_driver": runtime, "mtia_runtime": runtime, "glow_runtime": runtime,
	"mlu_runtime": runtime, "privateuse1_runtime": runtime, "privateuse1_driver": runtime,
	"kernel": kernel, "Kernel": kernel, "mtia_ccp_events": kernel, "collective_comm": kernel,
	"gpu_memcpy": transfer, "gpu_memset": transfer, "Memcpy": transfer, "Memset": transfer, "mlu_memcpy": transfer,
	"mlu_memset":        transfer,
	"cpu_instant_event": memory,
	// What these say is in the others, or is no time of anything.
	"": ignored, "Trace": ignored, "gpu_user_annotation": ignored, "gpu_user_Annotation": ignored,
	"mlu_user_annotation": ignored, "overhead": ignored, "external_correlation": ignored, "cuda_sync": ignored,
	"xpu_sync": ignored, "cuda_event": ignored, "cuda_profiler_range": ignored, "xpu_scope_profiler": ignored,
	"mtia_insight": ignored, "mtia_counters": ignored, "gpu_pm_counter": ignored,
}

// IsCategory reports whether events of a category are read.
func IsCategory(name string) bool { return categories[name] != ignored }

type decoder struct {
	scan    *scanner
	b       events.Builder
	options Options

	// event is the one that is read; fields and args say where to put its fields and its arguments.
	event        event
	fields, args map[string]*[]byte

	frames     map[frameKey]int32
	callStacks map[string]dictionary.StackIndex // by how they are written
	threads    map[threadKey]*thread
	list       []*thread
	steps      []step
	// callers are what kernels may come from: calls of the runtime by correlation id, ops by external id. add adds the ids
	// of kernels, and walk finds them.
	callers   [numCategories]map[int64]caller
	keptBytes int // the memory of all of these

	base            int64 // nanoseconds
	rank, worldSize int64
	first, last     int64 // the times of all events
	tree            *events.CallTree
	scope           compact.ScopeIndex
	profiles        [numProfiles]compact.ProfileIndex // of those with samples, plus one
}

// event has the fields of an event and of its args as they are written. They are valid until the next one is read.
type event struct {
	phase, category, name, process, thread, time, length, args []byte

	correlation, external, callStack, device, deviceType, stream, size, grid, block, threadName []byte

	// detail and average are clang's: what the event is about, and of how many events it is the sum. file is py-spy's.
	detail, average, file []byte
}

// thread is a thread of the processor, or a stream. name is an attribute.
type thread struct {
	process, id int64 // none if they are not numbers
	name        int32
	spans       []span
}

// threadKey has the ids of a thread as they are written.
type threadKey struct{ process, id string }

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

// caller is where a kernel comes from: a node of the tree.
type caller struct {
	start int64
	node  int32
}

// unknown is a caller that has not been found.
var unknown = caller{none, events.NoNode}

// step is a step of the profiler's schedule.
type step struct{ start, end, number int64 }

// The memory of what is kept: in slices that grow, and in maps, keys beside.
const (
	spanBytes   = 2*int(unsafe.Sizeof(span{})+unsafe.Sizeof(open{})) + events.NodeBytes
	callerBytes = 4 * int(unsafe.Sizeof(caller{}))
	threadBytes = 512
	entryBytes  = 96
)

// read reads the document, which may be only the events.
func (d *decoder) read() error {
	s, key := d.scan, ""
	var closing []byte // the brackets that are open
	for s.opens = true; s.opens || len(closing) > 0; {
		token, err := s.next(errBroken)
		if err == nil {
			err = d.reserve()
		}
		switch n := len(closing); {
		case d.options.Spans && errors.Is(err, errBroken): // its program has ended so
			return nil
		case err != nil:
			return err
		case s.opens && (token[0] == '[' || token[0] == '{' && n == 0):
			s.opens, closing = false, append(closing, token[0]+2)
		case s.opens, isEnd(token) && token[0] != closing[n-1]:
			return fmt.Errorf("%w: found %q", errSyntax, token)
		case isEnd(token):
			closing = closing[:n-1]
		case closing[n-1] == ']':
			d.readEvent(token)
		case s.delimiter == ':':
			key = text(token)
			s.opens = key == "traceEvents"
		default:
			d.readField(key, token)
		}
	}
	s.opens = true
	if token, err := s.next(nil); token == nil || d.options.Spans {
		return err
	}
	return errMore
}

func (d *decoder) readField(key string, value []byte) {
	var start, rank, worldSize []byte
	switch key {
	case "baseTimeNanoseconds":
		d.base = integer(value)
	case "beginningOfTime": // clang's
		d.base = int64(events.UnixNanos(integer(value)))
	case "otherData": // Bazel's
		if fields(value, map[string]*[]byte{"profile_start_ts": &start}); start != nil {
			d.base = int64(events.UnixNanos(integer(start)))
		}
	case "distributedInfo":
		fields(value, map[string]*[]byte{"rank": &rank, "world_size": &worldSize})
		d.rank, d.worldSize = integer(rank), integer(worldSize)
	}
}

// reserve reserves what is kept, and the buffer of the scanner.
func (d *decoder) reserve() error { return d.b.Check(d.keptBytes + 3*d.scan.longest) }

func (d *decoder) readEvent(value []byte) {
	e := &d.event
	*e = event{}
	if !fields(value, d.fields) {
		d.b.Stats.Dropped++
		return
	}
	is, isRead := categories[string(inside(e.category))]
	switch phase := string(inside(e.phase)); {
	case phase == "M":
		d.readName(e)
		return
	case phase == "E":
		is, isRead = end, true
	case phase != "X" && phase != "B" && (phase != "i" || d.options.Spans):
		return
	case d.options.Spans:
		is, isRead = other, true
	}
	start, hasTime := nanoseconds(inside(e.time))
	length, _ := nanoseconds(inside(e.length))
	switch {
	case !isRead:
		d.b.CountUnread(text(e.category))
	case is == ignored:
	case !hasTime:
		d.b.Stats.Dropped++
	default:
		fields(e.args, d.args)
		d.add(e, span{start: start, end: start + length, is: is})
	}
}

// readName reads the name of a thread. Kineto's thread 1649 (python3) repeats the number.
func (d *decoder) readName(e *event) {
	if text(e.name) != "thread_name" {
		return
	}
	fields(e.args, d.args)
	name := strings.TrimSpace(text(e.threadName))
	if _, inside, ok := strings.Cut(name, " ("); ok && strings.HasPrefix(name, "thread ") {
		name = strings.TrimSuffix(inside, ")")
	}
	d.thread(e).name = d.b.TextAttribute(events.AttributeThreadName, name)
}

// thread returns the thread that an event is of.
func (d *decoder) thread(e *event) *thread {
	t := d.threads[threadKey{string(e.process), string(e.thread)}]
	if t == nil {
		t = &thread{process: integer(e.process), id: integer(e.thread)}
		if t.id == none {
			t.name = d.b.TextAttribute(events.AttributeThreadName, text(e.thread))
		}
		d.threads[threadKey{string(e.process), string(e.thread)}] = t
		d.list = append(d.list, t)
		d.keptBytes += threadBytes + len(e.process) + len(e.thread)
	}
	return t
}

// add keeps an event.
func (d *decoder) add(e *event, s span) {
	d.keptBytes += spanBytes
	s.id, s.external = integer(e.correlation), integer(e.external)
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
		s.attributes = d.streamAttributes(e)
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
	t := d.thread(e)
	t.spans = append(t.spans, s)
}

// streamAttributes returns those of a kernel. Its stream is a thread to people: it has a name.
func (d *decoder) streamAttributes(e *event) dictionary.AttributeSetIndex {
	device, stream := integer(e.device, e.process), integer(e.stream, e.thread)
	name, grid, block := "", "", ""
	if stream != none {
		name = fmt.Sprintf("GPU %d stream %d", max(device, 0), stream)
	}
	if d.options.LaunchSizes {
		withoutBrackets := strings.NewReplacer("[", "", "]", "", " ", "")
		grid, block = withoutBrackets.Replace(string(e.grid)), withoutBrackets.Replace(string(e.block))
	}
	return d.b.AddAttributes(0, d.number(events.AttributeGPUDevice, device), d.number(events.AttributeGPUStream, stream),
		d.b.TextAttribute(events.AttributeThreadName, name), d.b.TextAttribute(AttributeGrid, grid),
		d.b.TextAttribute(AttributeBlock, block))
}

func (d *decoder) number(key string, value int64) int32 {
	return d.b.NumberAttribute(key, value, value != none)
}
