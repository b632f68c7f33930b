// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package torchmemory reads the memory snapshots of PyTorch's allocator of GPU memory: the pickle of torch.cuda.memory._dump_snapshot. It
// returns, in one scope:
//
//	inuse_space/bytes, inuse_objects/count  the blocks that are in use, by the stack that allocated them
//	reserved_space/bytes                    the segments that the allocator holds
//	allocated_space/bytes                   what was allocated while the history was recorded, with its times
//
// unpickle makes the values, and runs nothing else (pickle.go). decoder.addSegments and addTraces go over them. A stack is a list that
// many blocks share: decoder.stack interns each once.
package torchmemory

import (
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

const (
	// maxDepth is the largest number of frames of a stack: the outermost of a deeper one are left out.
	maxDepth = 1024
	// Values can be shared, so a small file can have very many blocks: minVisits + visitsPerByte × its length. A frame of a shared stack
	// takes two bytes.
	minVisits     = 64 << 10
	visitsPerByte = 1
)

// ErrNotSnapshot is the error for a pickle of something else.
var ErrNotSnapshot = errors.New("the pickle is no memory snapshot of PyTorch: it has no segments")

var errTooMany = fmt.Errorf("%w: the snapshot repeats its parts too often", events.ErrTooLarge)

// The profiles, in the order in which they are written.
const (
	inuseSpace = iota
	inuseObjects
	reservedSpace
	allocatedSpace
	numProfiles
)

var types = [numProfiles]events.Type{
	{Name: "inuse_space", Unit: "bytes"}, {Name: "inuse_objects", Unit: "count"}, {Name: "reserved_space", Unit: "bytes"},
	{Name: "allocated_space", Unit: "bytes"},
}

type decoder struct {
	b        events.Builder
	profiles [numProfiles]compact.ProfileIndex
	visits   int // how many more
	stacks   map[*list]dictionary.StackIndex
	frames   map[*dict]int32
	scratch  []int32
	sets     map[place]dictionary.AttributeSetIndex
	// first and last are the times of the history, in nanoseconds.
	first, last uint64
}

// place is where memory is.
type place struct{ device, stream int64 }

// Decode returns the profiles of a snapshot. Its time is that of the last entry of the history, or else the anchor.
func Decode(data []byte, options events.Options) (pprofile.Profiles, events.Stats, error) {
	d := decoder{
		visits: minVisits + visitsPerByte*len(data), stacks: map[*list]dictionary.StackIndex{}, frames: map[*dict]int32{},
		sets: map[place]dictionary.AttributeSetIndex{},
	}
	return d.b.Run(options, 0, len(data), func() error {
		kept := 0
		value, err := unpickle(data, func(memoryBytes int) error {
			kept = memoryBytes
			return d.b.Step(memoryBytes)
		})
		if err != nil {
			return fmt.Errorf("read the pickle: %w", err)
		}
		if err := d.b.Take(kept); err != nil {
			return err
		}
		snapshot, _ := value.(*dict)
		if snapshot.at("segments") == nil {
			return ErrNotSnapshot
		}
		return d.add(snapshot, options.Anchor)
	})
}

func (d *decoder) add(snapshot *dict, anchor events.Anchor) error {
	scope := d.b.NewScope()
	for i, t := range types {
		p := events.Profile{Sample: t, Period: events.Type{Name: "gpu_memory", Unit: "bytes"}, Shape: compact.Shape{Values: true}}
		p.Shape.Timestamps = i == allocatedSpace
		d.profiles[i] = d.b.NewProfile(scope, p)
	}
	if err := d.addTraces(snapshot.list("device_traces")); err != nil {
		return err
	}
	if err := d.addSegments(snapshot.list("segments")); err != nil {
		return err
	}
	if d.last == 0 {
		d.last = anchor.EndNanos
		d.b.GuessClock()
	}
	for i := range d.profiles {
		d.b.Widen(d.profiles[i], d.last, d.last)
	}
	if d.first != 0 {
		d.b.Widen(d.profiles[allocatedSpace], d.first, d.last)
	}
	return nil
}

// visit counts a value that is looked at.
func (d *decoder) visit() error {
	if d.visits--; d.visits < 0 {
		return errTooMany
	}
	return d.b.Step(0)
}

// addTraces adds the history: a list for each device.
func (d *decoder) addTraces(traces []any) error {
	for device, trace := range traces {
		entries, _ := trace.(*list)
		if entries == nil {
			d.b.Stats.Dropped++
			continue
		}
		for _, value := range entries.items {
			if err := d.visit(); err != nil {
				return err
			}
			entry, _ := value.(*dict)
			time := events.UnixNanos(entry.number("time_us"))
			if time == 0 {
				d.b.Stats.Dropped++
				continue
			}
			if d.first == 0 {
				d.first = time
			}
			d.first, d.last = min(d.first, time), max(d.last, time)
			if entry.text("action") != "alloc" {
				continue
			}
			stack, err := d.stack(entry)
			if err != nil {
				return err
			}
			id := compact.Identity{Stack: stack, Attributes: d.place(int64(device), entry.number("stream"))}
			d.b.Event(d.profiles[allocatedSpace], id, compact.Observation{Timestamp: time, Value: entry.number("size")})
		}
	}
	return nil
}

// addSegments adds what the allocator holds now.
func (d *decoder) addSegments(segments []any) error {
	for _, value := range segments {
		if err := d.visit(); err != nil {
			return err
		}
		segment, _ := value.(*dict)
		if segment == nil {
			d.b.Stats.Dropped++
			continue
		}
		set := d.place(segment.number("device"), segment.number("stream"))
		stack, err := d.stack(segment)
		if err != nil {
			return err
		}
		d.observe(reservedSpace, compact.Identity{Stack: stack, Attributes: set}, segment.number("total_size"))
		for _, value := range segment.list("blocks") {
			if err := d.visit(); err != nil {
				return err
			}
			block, _ := value.(*dict)
			// active_awaiting_free is not free yet: another stream uses it.
			if !strings.HasPrefix(block.text("state"), "active") {
				continue
			}
			stack, err := d.stack(block)
			if err != nil {
				return err
			}
			id := compact.Identity{Stack: stack, Attributes: set}
			d.observe(inuseSpace, id, block.number("size"))
			d.observe(inuseObjects, id, 1)
		}
	}
	return nil
}

func (d *decoder) observe(p int, id compact.Identity, value int64) {
	d.b.Stats.Events++
	d.b.Observe(d.profiles[p], id, compact.Observation{Value: value})
}

func (d *decoder) place(device, stream int64) dictionary.AttributeSetIndex {
	at := place{device, stream}
	set, ok := d.sets[at]
	if !ok {
		set = d.b.Dict.AttributeSets.Intern([]int32{
			d.b.IntAttribute(events.AttributeGPUDevice, device), d.b.IntAttribute(events.AttributeGPUStream, stream),
		})
		d.sets[at] = set
	}
	return set
}

// stack interns the frames of a block, a segment or an entry of the history, the leaf first. Those that made the stack are left out.
func (d *decoder) stack(of *dict) (dictionary.StackIndex, error) {
	frames, _ := of.at("frames").(*list)
	if frames == nil {
		return 0, nil
	}
	if stack, ok := d.stacks[frames]; ok {
		return stack, nil
	}
	items := frames.items
	for len(items) > 1 && isOfCapture(items[0]) {
		items = items[1:]
	}
	hasPython := false
	for _, value := range items {
		frame, _ := value.(*dict)
		hasPython = hasPython || isPython(frame)
	}
	d.scratch = d.scratch[:0]
	for _, value := range items {
		if err := d.visit(); err != nil {
			return 0, err
		}
		frame, _ := value.(*dict)
		if frame == nil || hasPython && isOfInterpreter(frame.text("name")) || len(d.scratch) == maxDepth {
			continue
		}
		d.scratch = append(d.scratch, d.frame(frame))
	}
	stack := d.b.Dict.Stacks.Intern(d.scratch)
	d.stacks[frames] = stack
	return stack, nil
}

func isPython(frame *dict) bool { return strings.HasSuffix(frame.text("filename"), ".py") }

// isOfCapture reports whether a frame is of what makes a stack, which is on top of all of them.
func isOfCapture(value any) bool {
	frame, _ := value.(*dict)
	name := frame.text("name")
	return strings.Contains(name, "unwind::unwind") || strings.Contains(name, "CapturedTraceback::gather") ||
		strings.Contains(name, "gather_with_cpp")
}

// isOfInterpreter reports whether a frame of C runs a frame of Python, which is there, too.
func isOfInterpreter(name string) bool {
	for _, prefix := range []string{"_PyEval_", "PyEval_", "_PyObject_", "PyObject_", "_PyFunction_", "PyFunction_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func (d *decoder) frame(frame *dict) int32 {
	if i, ok := d.frames[frame]; ok {
		return i
	}
	intern := func(s string) dictionary.StringIndex { return d.b.Dict.Strings.Intern(d.b.CleanString(s)) }
	typ := "native"
	f, line := dictionary.Function{Name: intern(frame.text("name"))}, int64(0)
	if filename := frame.text("filename"); filename != "" && filename != "??" {
		f.Filename, line = intern(filename), max(frame.number("line"), 0)
	}
	if isPython(frame) {
		typ = "cpython"
	}
	i := d.b.TypedFrame(f, line, typ)
	d.frames[frame] = i
	return i
}
