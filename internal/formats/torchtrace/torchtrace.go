// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package torchtrace reads the traces of PyTorch's profiler: Kineto's JSON, as export_chrome_trace, Dynolog and vLLM write it. It
// returns, in one scope:
//
//	gpu_time/nanoseconds          kernels, copies and fills of memory: when they ran, under the launch and what called it
//	cpu_time/nanoseconds          ops, Python functions and calls of the runtime: the time that is their own, waiting included
//	gpu_launch_delay/nanoseconds  from the beginning of the launch to that of the kernel
//	gpu_memory                    allocated_space/bytes and freed_space/bytes of the allocator, if profile_memory was on
//
// Decode reads the events as a stream, in any order, and keeps of each a few numbers: of the threads' (spans, which nest by time), of the
// GPU's (work, which names its launch by a correlation id) and of the allocator's. Then thread.walk goes over each thread in the order of time
// (nest.go), and the GPU's work gets the stack of its launch. Times are microseconds since baseTimeNanoseconds, or Unix time.
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
		rank: none, worldSize: none, threads: map[string]*thread{}, launches: map[int64]launch{}, ops: map[int64]launch{},
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
	"xpu_runtime": runtime, "xpu_driver": runtime, "mtia_runtime": runtime, "glow_runtime": runtime, "mlu_runtime": runtime,
	"privateuse1_runtime": runtime, "privateuse1_driver": runtime,
	"kernel": gpu, "Kernel": gpu, "gpu_memcpy": gpu, "gpu_memset": gpu, "Memcpy": gpu, "Memset": gpu, "mtia_ccp_events": gpu,
	"collective_comm": gpu, "mlu_memcpy": gpu, "mlu_memset": gpu,
	"cpu_instant_event": memory,
	// What these say is in the others, or is no time of anything.
	"": ignored, "Trace": ignored, "gpu_user_annotation": ignored, "gpu_user_Annotation": ignored, "mlu_user_annotation": ignored,
	"overhead": ignored, "external_correlation": ignored, "cuda_sync": ignored, "xpu_sync": ignored, "cuda_event": ignored,
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
	// launches are the calls that the GPU's work came from, by correlation id, ops what encloses them by external id. read adds the keys that
	// are asked for.
	launches, ops map[int64]launch
	records       int // spans, ends of spans and steps
	steps         []step

	base            int64 // nanoseconds
	rank, worldSize int64
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

// event is one of the trace, as far as all have the same fields. They are valid until the next one is read.
type event struct {
	phase                byte
	is                   category
	name, pid, tid, args []byte
	start, duration      int64 // nanoseconds
	hasTime              bool
}

// none is a number that an event does not have.
const none = math.MinInt64

// integerOr returns a whole number, which may be written as a string.
func integerOr(value []byte, other int64) int64 {
	if n, err := strconv.ParseInt(string(bytes.Trim(value, `"`)), 0, 64); err == nil {
		return n
	}
	return other
}

func (d *decoder) read() error {
	if c, err := d.scan.next(); err != nil {
		return err
	} else if c == '[' {
		return d.scan.list('[', ']', d.readEvent)
	}
	return d.scan.object(func(key string) error {
		if key == "traceEvents" {
			return d.scan.list('[', ']', d.readEvent)
		}
		value, err := d.scan.value()
		if err != nil {
			return err
		}
		switch key {
		case "baseTimeNanoseconds":
			d.base = integerOr(value, 0)
		case "distributedInfo":
			fields(value, func(key, value []byte) {
				switch string(key) {
				case "rank":
					d.rank = integerOr(value, none)
				case "world_size":
					d.worldSize = integerOr(value, none)
				}
			})
		}
		return nil
	})
}

func (d *decoder) readEvent() error {
	value, err := d.scan.value()
	if err != nil {
		return err
	}
	if err := d.b.Step(d.keptBytes()); err != nil {
		return err
	}
	var e event
	var unread []byte // its category, if that is unknown
	isObject := fields(value, func(key, value []byte) {
		switch string(key) {
		case "ph":
			if len(value) == 3 {
				e.phase = value[1]
			}
		case "cat":
			is, isKnown := categories[string(bytes.Trim(value, `"`))]
			if e.is = is; !isKnown {
				unread = value
			}
			d.isKnown = d.isKnown || is != ignored
		case "name":
			e.name = value
		case "pid":
			e.pid = value
		case "tid":
			e.tid = value
		case "ts":
			e.start, e.hasTime = nanoseconds(value)
		case "dur":
			e.duration, _ = nanoseconds(value)
		case "args":
			e.args = value
		}
	})
	switch {
	case !isObject:
		d.b.Stats.Dropped++
	case e.phase == 'M':
		d.readName(&e)
	case e.phase == 'E' && e.hasTime:
		t := d.thread(&e)
		t.ends = append(t.ends, e.start)
		d.records++
	case unread != nil && e.phase == 'X':
		d.b.CountUnread(text(unread))
	case e.is == ignored || e.phase != 'X' && e.phase != 'B' && e.phase != 'i':
	case !e.hasTime:
		d.b.Stats.Dropped++
	default:
		d.add(&e)
	}
	return nil
}

// The memory of what is kept: records, of which spans are the largest, and work, in slices that grow, a thread, an entry of a map beside its key.
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

// readName reads the name of a thread.
func (d *decoder) readName(e *event) {
	if text(e.name) != "thread_name" {
		return
	}
	fields(e.args, func(key, value []byte) {
		if string(key) == "name" {
			// Kineto's thread 1649 (python3) repeats the number.
			name := strings.TrimSpace(d.b.CleanString(text(value)))
			if _, inside, ok := strings.Cut(name, " ("); ok && strings.HasPrefix(name, "thread ") {
				name = strings.TrimSuffix(inside, ")")
			}
			d.textBytes += len(name)
			d.thread(e).name = name
		}
	})
}

// thread returns the thread that an event is of.
func (d *decoder) thread(e *event) *thread {
	d.key = append(append(append(d.key[:0], e.pid...), 0), e.tid...)
	t := d.threads[string(d.key)]
	if t == nil {
		t = &thread{process: integerOr(e.pid, none), id: integerOr(e.tid, none)}
		d.threads[string(d.key)] = t
		d.list = append(d.list, t)
		d.textBytes += len(d.key)
	}
	return t
}

// add keeps an event.
func (d *decoder) add(e *event) {
	s := span{start: e.start, end: e.start + e.duration, is: e.is, list: noList, isOpen: e.phase == 'B'}
	w := work{start: e.start, end: s.end, correlation: none, external: none}
	size, device, deviceType := int64(0), int64(none), int64(0)
	var grid, block []byte
	stream := int64(none)
	fields(e.args, func(key, value []byte) {
		switch string(key) {
		case "correlation":
			w.correlation = integerOr(value, none)
		case "External id", "external id":
			w.external = integerOr(value, none)
		case "Call stack":
			s.list = d.callStack(value)
		case "device", "Device Id":
			device = integerOr(value, none)
		case "Device Type":
			deviceType = integerOr(value, 0)
		case "stream":
			stream = integerOr(value, none)
		case "Bytes":
			size = integerOr(value, 0)
		case "grid":
			grid = value
		case "block":
			block = value
		}
	})
	switch {
	case e.is == gpu:
		w.frame = d.frame(e.name, gpu)
		w.attributes = d.streamAttributes(e, device, stream, grid, block)
		d.work = append(d.work, w)
		d.launches[w.correlation], d.ops[w.external] = launch{}, launch{}
		return
	case e.is == memory && (text(e.name) != "[memory]" || size == 0 || deviceType == 0): // 0 is the processor
		return
	case e.is == memory:
		s.id, s.end, s.isOpen = size, s.start, false
	case e.is == annotation && bytes.HasPrefix(e.name, []byte(`"`+stepPrefix)):
		d.records++
		d.steps = append(d.steps, step{s.start, s.end, integerOr(e.name[len(stepPrefix)+1:], none)})
		return
	case e.is == runtime:
		s.id = w.correlation
	default:
		s.id = w.external
	}
	if e.is != memory {
		s.frame = d.frame(e.name, e.is)
	}
	t := d.thread(e)
	t.spans = append(t.spans, s)
	d.records++
}

// stepPrefix begins the annotation of one step of the profiler's schedule.
const stepPrefix = "ProfilerStep#"

// step is a step of the profiler's schedule.
type step struct{ start, end, number int64 }

// streamAttributes returns those of work on a GPU. Its stream is a thread to people: it has a name.
func (d *decoder) streamAttributes(e *event, device, stream int64, grid, block []byte) dictionary.AttributeSetIndex {
	if device == none {
		device = integerOr(e.pid, none)
	}
	if stream == none {
		stream = integerOr(e.tid, none)
	}
	list := d.attributes[:0]
	if device != none {
		list = append(list, d.b.IntAttribute(events.AttributeGPUDevice, device))
	}
	if stream != none {
		list = append(list, d.b.IntAttribute(events.AttributeGPUStream, stream),
			d.b.StringAttribute(events.AttributeThreadName, fmt.Sprintf("GPU %d stream %d", max(device, 0), stream)))
	}
	if d.options.LaunchSizes && grid != nil && block != nil {
		for key, value := range map[string][]byte{AttributeGrid: grid, AttributeBlock: block} {
			list = append(list, d.b.StringAttribute(key, strings.NewReplacer("[", "", "]", "", " ", "").Replace(string(value))))
		}
	}
	d.attributes = list
	return d.b.Dict.AttributeSets.Intern(list)
}
