// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package torchtrace reads the traces of PyTorch's profiler: Kineto's JSON, as export_chrome_trace, Dynolog and vLLM
// write it. It returns, in one scope:
//
//	gpu_time/nanoseconds          kernels, copies and fills of memory: when they ran, under the launch and what called it
//	cpu_time/nanoseconds          ops, Python functions and calls of the runtime: the time that is their own, waiting included
//	gpu_launch_delay/nanoseconds  from the beginning of the launch to that of the kernel
//	gpu_memory                    allocated_space/bytes and freed_space/bytes of the allocator, if profile_memory was on
//
// Decode reads the events as a stream, in any order, and keeps of each a few numbers: of the threads' (spans, which
// nest by time), of the GPU's (work, which names its launch by a correlation id) and of the allocator's. Then
// thread.walk goes over each thread in the order of time (nest.go), and the GPU's work gets the stack of its launch.
// Times are microseconds since baseTimeNanoseconds, or Unix time.
package torchtrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
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
}

// ErrNotTrace is the error for a document without events of PyTorch.
var ErrNotTrace = errors.New("there are no events of PyTorch's profiler in the trace")

// Decode returns the profiles of a trace of which r has the plain JSON.
func Decode(r io.Reader, options Options) (pprofile.Profiles, events.Stats, error) {
	d := decoder{
		scan: scanner{from: r}, options: options, frames: map[frameKey]int32{}, callStacks: map[string]int32{},
		rank: none, worldSize: none, first: maxNanos, threads: map[string]*thread{}, launches: map[int64]launch{},
		ops: map[int64]launch{},
	}
	return d.b.Run(options.Options, firstBufferBytes, 0, func() error {
		if err := d.read(); err != nil {
			return fmt.Errorf("read JSON: %w", err)
		}
		return d.finish(options.Anchor)
	})
}

// category is what an event is.
type category uint8

const (
	ignored category = iota
	annotation
	python
	op
	runtime
	gpu
	memory
	numCategories
)

// categories are Kineto's names of activities, those of its earlier versions included.
var categories = map[string]category{
	"cpu_op": op, "Operator": op, "operator": op, "hpu_op": op,
	"python_function": python, "Python function": python, "user_annotation": annotation,
	"cuda_runtime": runtime, "cuda_driver": runtime, "Runtime": runtime, "runtime": runtime, "hip_runtime": runtime,
	"xpu_runtime": runtime, "xpu_driver": runtime, "mtia_runtime": runtime, "glow_runtime": runtime,
	"mlu_runtime":         runtime,
	"privateuse1_runtime": runtime, "privateuse1_driver": runtime,
	"kernel": gpu, "Kernel": gpu, "gpu_memcpy": gpu, "gpu_memset": gpu, "Memcpy": gpu, "Memset": gpu,
	"mtia_ccp_events": gpu,
	"collective_comm": gpu, "mlu_memcpy": gpu, "mlu_memset": gpu,
	"cpu_instant_event": memory,
	// What these say is in the others, or is no time of anything.
	"": ignored, "Trace": ignored, "gpu_user_annotation": ignored, "gpu_user_Annotation": ignored,
	"mlu_user_annotation": ignored,
	"overhead":            ignored, "external_correlation": ignored, "cuda_sync": ignored, "xpu_sync": ignored,
	"cuda_event":          ignored,
	"cuda_profiler_range": ignored, "xpu_scope_profiler": ignored, "mtia_insight": ignored, "mtia_counters": ignored,
	"gpu_pm_counter": ignored,
}

// IsCategory reports whether events of a category are read.
func IsCategory(name string) bool { return categories[name] != ignored }

type decoder struct {
	scan    scanner
	b       events.Builder
	options Options

	frames     map[frameKey]int32
	callStacks map[string]int32 // the number of a list in lists, by its text
	lists      [][]int32        // frames, from the root
	textBytes  int              // of the keys of the maps

	threads map[string]*thread
	list    []*thread
	key     []byte
	work    []work
	// launches are the calls that the GPU's work came from, by correlation id, ops what encloses them by external id. read
	// adds the keys that are asked for.
	launches, ops map[int64]launch
	records       int // spans, ends of spans and steps
	steps         []step

	base            int64 // nanoseconds
	rank, worldSize int64
	first, last     int64 // the times of all events
	framesLeft      int
	scope           compact.ScopeIndex
	// profiles are those with samples: their indices, plus one.
	profiles   [numProfiles]compact.ProfileIndex
	attributes []int32 // scratch
	isKnown    bool    // there was an event of PyTorch
}

// frameKey is the name of a frame and the category of its event.
type frameKey struct {
	name string
	is   category
}

// work is what a GPU did. stream is a set of attributes.
type work struct {
	start, end            int64
	correlation, external int64
	frame                 int32
	attributes            dictionary.AttributeSetIndex
}

// launch is where work came from.
type launch struct {
	start int64
	stack dictionary.StackIndex
	isSet bool
}

// none is a number that an event does not have.
const none = math.MinInt64

// integer returns the first value that is a whole number, which may be written as a string, or none.
func integer(values ...[]byte) int64 {
	for _, value := range values {
		if n, err := strconv.ParseInt(string(bytes.Trim(value, `"`)), 0, 64); err == nil {
			return n
		}
	}
	return none
}

func (d *decoder) read() error {
	readEvents := func() error { return d.scan.list('[', ']', d.readEvent) }
	if c, err := d.scan.next(); err != nil || c == '[' {
		return readEvents() // which returns the error again
	}
	return d.scan.object(func(key string) error {
		if key == "traceEvents" {
			return readEvents()
		}
		value, err := d.scan.value()
		switch key {
		case "baseTimeNanoseconds":
			d.base = integer(value)
		case "distributedInfo":
			var ranks [2][]byte
			fields(value, map[string]int{"rank": 0, "world_size": 1}, ranks[:])
			d.rank, d.worldSize = integer(ranks[0]), integer(ranks[1])
		}
		return err
	})
}

// The fields of an event that are read, and of its args.
const (
	phaseField = iota
	catField
	nameField
	pidField
	tidField
	tsField
	durField
	argsField
	numFields
)

const (
	correlationArg = iota
	externalArg
	callStackArg
	deviceArg
	deviceTypeArg
	streamArg
	sizeArg
	gridArg
	blockArg
	numArgs
)

var (
	fieldsOfEvents = map[string]int{"ph": phaseField, "cat": catField, "name": nameField, "pid": pidField, "tid": tidField,
		"ts": tsField, "dur": durField, "args": argsField}
	fieldsOfArgs = map[string]int{
		"correlation": correlationArg, "External id": externalArg, "external id": externalArg, "Call stack": callStackArg,
		"device":    deviceArg,
		"Device Id": deviceArg, "Device Type": deviceTypeArg, "stream": streamArg, "Bytes": sizeArg, "grid": gridArg,
		"block": blockArg,
	}
)

// event has the fields of an event as they are written. They are valid until the next one is read.
type event struct {
	fields     [numFields][]byte
	args       [numArgs][]byte
	is         category
	start, end int64 // nanoseconds
}

func (d *decoder) readEvent() error {
	value, err := d.scan.value()
	if err != nil {
		return err
	}
	if err := d.b.Check(d.keptBytes()); err != nil {
		return err
	}
	var e event
	if !fields(value, fieldsOfEvents, e.fields[:]) {
		d.b.Stats.Dropped++
		return nil
	}
	is, isRead := categories[string(bytes.Trim(e.fields[catField], `"`))]
	e.is, d.isKnown = is, d.isKnown || is != ignored
	var hasTime bool
	e.start, hasTime = nanoseconds(e.fields[tsField])
	length, _ := nanoseconds(e.fields[durField])
	e.end = e.start + length
	switch ph := string(bytes.Trim(e.fields[phaseField], `"`)); {
	case ph == "M":
		d.readName(&e)
	case ph == "E" && hasTime:
		t := d.thread(&e)
		t.ends = append(t.ends, e.start)
		d.last = max(d.last, e.start)
		d.records++
	case !isRead && ph == "X":
		d.b.CountUnread(text(e.fields[catField]))
	case is == ignored || ph != "X" && ph != "B" && ph != "i":
	case !hasTime:
		d.b.Stats.Dropped++
	default:
		fields(e.fields[argsField], fieldsOfArgs, e.args[:])
		d.add(&e, ph == "B")
	}
	return nil
}

// The memory of what is kept: records, of which spans are the largest, and work, in slices that grow, a thread, an
// entry of a map beside its key.
const (
	recordBytes = 2 * int(unsafe.Sizeof(span{}))
	workBytes   = 2*int(unsafe.Sizeof(work{})) + 4*int(unsafe.Sizeof(launch{}))
	threadBytes = 512
	entryBytes  = 96
)

func (d *decoder) keptBytes() int {
	return d.records*recordBytes + len(d.work)*workBytes + len(d.list)*threadBytes + d.textBytes +
		entryBytes*(len(d.frames)+len(d.callStacks)) + 2*cap(d.scan.buf)
}

// readName reads the name of a thread. Kineto's thread 1649 (python3) repeats the number.
func (d *decoder) readName(e *event) {
	var written [1][]byte
	if text(e.fields[nameField]) != "thread_name" || !fields(e.fields[argsField], map[string]int{"name": 0}, written[:]) {
		return
	}
	s := strings.TrimSpace(d.b.CleanString(text(written[0])))
	if _, inside, ok := strings.Cut(s, " ("); ok && strings.HasPrefix(s, "thread ") {
		s = strings.TrimSuffix(inside, ")")
	}
	d.textBytes += len(s)
	d.thread(e).name = s
}

// thread returns the thread that an event is of.
func (d *decoder) thread(e *event) *thread {
	d.key = append(append(append(d.key[:0], e.fields[pidField]...), 0), e.fields[tidField]...)
	t := d.threads[string(d.key)]
	if t == nil {
		t = &thread{process: integer(e.fields[pidField]), id: integer(e.fields[tidField])}
		d.threads[string(d.key)] = t
		d.list = append(d.list, t)
		d.textBytes += len(d.key)
	}
	return t
}

// add keeps an event.
func (d *decoder) add(e *event, isOpen bool) {
	s := span{start: e.start, end: e.end, is: e.is, list: noList, isOpen: isOpen}
	switch e.is {
	case gpu:
		w := work{e.start, e.end, integer(e.args[correlationArg]), integer(e.args[externalArg]),
			d.frame(e.fields[nameField], gpu), d.streamAttributes(e)}
		d.work = append(d.work, w)
		d.launches[w.correlation], d.ops[w.external] = launch{}, launch{}
		d.first, d.last = min(d.first, e.start), max(d.last, e.end)
		return
	case memory:
		s.id, s.end, s.isOpen = integer(e.args[sizeArg]), s.start, false
		on := integer(e.args[deviceTypeArg]) // 0 is the processor
		if text(e.fields[nameField]) != "[memory]" || s.id == none || s.id == 0 || on == none || on == 0 {
			return
		}
	case annotation:
		if number, ok := bytes.CutPrefix(e.fields[nameField], []byte(`"ProfilerStep#`)); ok {
			d.records++
			d.steps = append(d.steps, step{e.start, e.end, integer(number)})
			return
		}
		s.id = integer(e.args[externalArg])
	case runtime:
		s.id = integer(e.args[correlationArg])
	default:
		s.id = integer(e.args[externalArg])
	}
	if e.is != memory {
		s.frame = d.frame(e.fields[nameField], e.is)
	}
	if written := e.args[callStackArg]; written != nil {
		s.list = d.callStack(written)
	}
	d.first, d.last = min(d.first, s.start), max(d.last, s.end)
	t := d.thread(e)
	t.spans = append(t.spans, s)
	d.records++
}

// step is a step of the profiler's schedule.
type step struct{ start, end, number int64 }

// streamAttributes returns those of work on a GPU. Its stream is a thread to people: it has a name.
func (d *decoder) streamAttributes(e *event) dictionary.AttributeSetIndex {
	list := d.attributes[:0]
	on, s := integer(e.args[deviceArg], e.fields[pidField]), integer(e.args[streamArg], e.fields[tidField])
	if on != none {
		list = append(list, d.b.IntAttribute(events.AttributeGPUDevice, on))
	}
	if s != none {
		list = append(list, d.b.IntAttribute(events.AttributeGPUStream, s),
			d.b.StringAttribute(events.AttributeThreadName, fmt.Sprintf("GPU %d stream %d", max(on, 0), s)))
	}
	if d.options.LaunchSizes && e.args[gridArg] != nil && e.args[blockArg] != nil {
		for key, value := range map[string][]byte{AttributeGrid: e.args[gridArg], AttributeBlock: e.args[blockArg]} {
			list = append(list, d.b.StringAttribute(key, strings.NewReplacer("[", "", "]", "", " ", "").Replace(string(value))))
		}
	}
	d.attributes = list
	return d.b.Dict.AttributeSets.Intern(list)
}
