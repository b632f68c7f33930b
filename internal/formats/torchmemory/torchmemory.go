// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package torchmemory reads the memory snapshots of PyTorch's allocator of GPU memory: the pickle of
// torch.cuda.memory._dump_snapshot, or the list of torch.cuda.memory_snapshot. It returns, in one scope:
//
//	inuse_space/bytes, inuse_objects/count  the blocks that are in use, by the stack that allocated them
//	reserved_space/bytes                    the segments that the allocator holds
//	allocated_space/bytes                   what was allocated while the history was recorded, with its times
//
// unpickle makes the values, and runs nothing else (pickle.go). decoder.addSegment and addEntry read them. A stack is a
// list that many blocks share: decoder.stack interns each once.
package torchmemory

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

const (
	// maxDepth is the largest number of frames of a stack: the outermost of a deeper one are left out.
	maxDepth = 1024
	// Values can be shared, so a small file can have very many blocks: minVisits + visitsPerByte × its length. A frame of
	// a shared stack takes two bytes.
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
	events.Bytes("inuse_space"), events.Count("inuse_objects"), events.Bytes("reserved_space"),
	events.Bytes("allocated_space"),
}

type decoder struct {
	b        events.Builder
	profiles [numProfiles]compact.ProfileIndex
	visits   int // how many more
	err      error
	stacks   map[*object]dictionary.StackIndex
	frames   map[*object]int32
	// last is the end of the history in nanoseconds, anchor the time of entries that have none, before PyTorch 2.1.
	last, anchor uint64
}

// Decode returns the profiles of a snapshot. Its time is that of the last entry of the history, or else the anchor.
func Decode(data []byte, options events.Options) (pprofile.Profiles, events.Stats, error) {
	d := decoder{
		visits: minVisits + visitsPerByte*len(data), stacks: map[*object]dictionary.StackIndex{}, frames: map[*object]int32{},
		anchor: options.Anchor.EndNanos,
	}
	return d.b.Run(options, 0, len(data), func() error {
		value, err := unpickle(&d.b, data)
		if err != nil {
			return fmt.Errorf("read the pickle: %w", err)
		}
		snapshot, _ := value.(*object)
		if snapshot != nil && !snapshot.isDict && snapshot.isSegments() {
			snapshot = &object{items: []any{"segments", snapshot}, isDict: true}
		}
		if get[any](snapshot, "segments") == nil {
			return ErrNotSnapshot
		}
		d.add(snapshot)
		return d.err
	})
}

// isSegments reports whether a list is that of torch.cuda.memory_snapshot, which has no history.
func (o *object) isSegments() bool {
	if len(o.items) == 0 {
		return false
	}
	segment, _ := o.items[0].(*object)
	return get[*object](segment, "blocks") != nil
}

func (d *decoder) add(snapshot *object) {
	scope := d.b.NewScope()
	for i, t := range types {
		d.profiles[i] = d.b.NewProfile(scope, events.Profile{Sample: t, Period: events.Bytes("gpu_memory"),
			Shape: compact.Shape{Values: true, Timestamps: i == allocatedSpace}})
	}
	traces := cmp.Or(get[*object](snapshot, "device_traces"), &object{})
	for device, trace := range traces.items {
		entries, _ := trace.(*object)
		for entry := range d.each(entries) {
			d.addEntry(int64(device), entry)
		}
	}
	for segment := range d.each(get[*object](snapshot, "segments")) {
		d.addSegment(segment)
	}
	for _, p := range d.profiles {
		if d.last > 0 {
			d.b.Widen(p, d.last, d.last)
		}
	}
	d.b.SetClock()
}

// each yields the dictionaries of a list. Other values are counted. After an error it yields nothing.
func (d *decoder) each(values *object) iter.Seq[*object] {
	return func(yield func(*object) bool) {
		if values == nil || values.isDict {
			return
		}
		for _, value := range values.items {
			if d.visits--; d.visits < 0 {
				d.err = cmp.Or(d.err, errTooMany)
			}
			if d.err = cmp.Or(d.err, d.b.Check(0)); d.err != nil {
				return
			}
			if dict, ok := value.(*object); !ok || !dict.isDict {
				d.b.Stats.Dropped++
			} else if !yield(dict) {
				return
			}
		}
	}
}

// addEntry adds an entry of a device's history.
func (d *decoder) addEntry(device int64, entry *object) {
	time := events.UnixNanos(get[int64](entry, "time_us"))
	if time > 0 {
		d.b.Widen(d.profiles[allocatedSpace], time, time)
	}
	d.last = max(d.last, time)
	if time = cmp.Or(time, d.anchor); time == 0 {
		d.b.Stats.Dropped++
	} else if get[string](entry, "action") == "alloc" {
		d.observe(allocatedSpace, d.identity(entry, device, get[int64](entry, "stream")), time, get[int64](entry, "size"))
	}
}

// addSegment adds a segment that the allocator holds, and its blocks.
func (d *decoder) addSegment(segment *object) {
	device, stream := get[int64](segment, "device"), get[int64](segment, "stream")
	d.observe(reservedSpace, d.identity(segment, device, stream), 0, get[int64](segment, "total_size"))
	for block := range d.each(get[*object](segment, "blocks")) {
		// active_awaiting_free is not free yet: another stream uses it.
		if strings.HasPrefix(get[string](block, "state"), "active") {
			id := d.identity(block, device, stream)
			d.observe(inuseSpace, id, 0, get[int64](block, "size"))
			d.observe(inuseObjects, id, 0, 1)
		}
	}
}

func (d *decoder) observe(p int, id compact.Identity, time uint64, value int64) {
	d.b.Stats.Events++
	d.b.Observe(d.profiles[p], id, compact.Observation{Timestamp: time, Value: value})
}

// identity returns the stack of a block, a segment or an entry of the history, and where it is.
func (d *decoder) identity(of *object, device, stream int64) compact.Identity {
	set := d.b.AddAttributes(0, d.b.NumberAttribute(events.AttributeGPUDevice, device, true),
		d.b.NumberAttribute(events.AttributeGPUStream, stream, true),
		d.b.TextAttribute(events.AttributeThreadName, fmt.Sprintf("GPU %d memory", device)))
	// Before PyTorch 2.1 the stack of a block is in its history.
	if history := get[*object](of, "history"); history != nil && len(history.items) > 0 {
		of, _ = history.items[0].(*object)
	}
	return compact.Identity{Stack: d.stack(get[*object](of, "frames")), Attributes: set}
}

// stack interns a list of frames, the leaf first. Those that made the stack are left out.
func (d *decoder) stack(list *object) dictionary.StackIndex {
	if stack, ok := d.stacks[list]; ok || list == nil {
		return stack
	}
	frames := slices.Collect(d.each(list))
	for len(frames) > 1 && isOfCapture(frames[0].name()) {
		frames = frames[1:]
	}
	if slices.ContainsFunc(frames, (*object).isPython) {
		frames = slices.DeleteFunc(frames, func(f *object) bool { return ofInterpreter.MatchString(f.name()) })
	}
	var locations []int32
	for _, frame := range frames[:min(len(frames), maxDepth)] {
		locations = append(locations, d.frame(frame))
	}
	d.stacks[list] = d.b.Dict.Stacks.Intern(locations)
	return d.stacks[list]
}

func (o *object) name() string { return get[string](o, "name") }

func (o *object) isPython() bool { return strings.HasSuffix(get[string](o, "filename"), ".py") }

// isOfCapture reports whether a frame is of the code that makes a stack, which is on top of all of them. All frames can
// have one long name.
func isOfCapture(name string) bool {
	const longest = 256
	name = name[:min(len(name), longest)]
	return strings.Contains(name, "unwind::unwind") || strings.Contains(name, "CapturedTraceback::gather") ||
		strings.Contains(name, "gather_with_cpp")
}

// ofInterpreter matches frames of C that run a frame of Python, which is there, too, and those that run the
// interpreter. CPython's functions all begin with Py.
var ofInterpreter = regexp.MustCompile(`^(_?Py[A-Z_]|_start$|__libc_(start|init))`)

func (d *decoder) frame(frame *object) int32 {
	if i, ok := d.frames[frame]; ok {
		return i
	}
	f, line, typ := dictionary.Function{Name: d.b.Dict.Strings.Intern(frame.name())}, int64(0), "native"
	if filename := get[string](frame, "filename"); filename != "" && filename != "??" {
		f.Filename, line = d.b.Dict.Strings.Intern(filename), get[int64](frame, "line")
	}
	if frame.isPython() {
		typ = "cpython"
	}
	d.frames[frame] = d.b.TypedFrame(f, line, typ)
	return d.frames[frame]
}
