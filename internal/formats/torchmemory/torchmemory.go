// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package torchmemory reads the memory snapshots of PyTorch's allocator of GPU memory: the pickle of
// torch.cuda.memory._dump_snapshot. It returns, in one scope:
//
//	inuse_space/bytes, inuse_objects/count  the blocks that are in use, by the stack that allocated them
//	reserved_space/bytes                    the segments that the allocator holds
//	allocated_space/bytes                   what was allocated while the history was recorded, with its times
//
// unpickle makes the values, and runs nothing else (pickle.go). decoder.addSegment and addEntry read them. A stack is a
// list that many blocks share: decoder.stack interns each once.
package torchmemory

import (
	"errors"
	"fmt"
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
	{Name: "inuse_space", Unit: "bytes"}, {Name: "inuse_objects", Unit: "count"}, {Name: "reserved_space", Unit: "bytes"},
	{Name: "allocated_space", Unit: "bytes"},
}

type decoder struct {
	b        events.Builder
	profiles [numProfiles]compact.ProfileIndex
	visits   int // how many more
	stacks   map[*object]dictionary.StackIndex
	frames   map[*object]int32
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
		visits: minVisits + visitsPerByte*len(data), stacks: map[*object]dictionary.StackIndex{}, frames: map[*object]int32{},
		sets: map[place]dictionary.AttributeSetIndex{},
	}
	return d.b.Run(options, 0, len(data), func() error {
		kept := 0
		value, err := unpickle(data, func(memoryBytes int) error {
			kept = memoryBytes
			return d.b.Check(memoryBytes)
		})
		if err != nil {
			return fmt.Errorf("read the pickle: %w", err)
		}
		if err := d.b.Grow(kept); err != nil {
			return err
		}
		snapshot, _ := value.(*object)
		if snapshot.at("segments") == nil {
			return ErrNotSnapshot
		}
		return d.add(snapshot, options.Anchor)
	})
}

func (d *decoder) add(snapshot *object, anchor events.Anchor) error {
	scope := d.b.NewScope()
	for i, t := range types {
		p := events.Profile{Sample: t, Period: events.Type{Name: "gpu_memory", Unit: "bytes"},
			Shape: compact.Shape{Values: true}}
		p.Shape.Timestamps = i == allocatedSpace
		d.profiles[i] = d.b.NewProfile(scope, p)
	}
	if traces := snapshot.list("device_traces"); traces != nil {
		for device, trace := range traces.items {
			if err := d.each(listOf(trace), func(entry *object) error { return d.addEntry(int64(device), entry) }); err != nil {
				return err
			}
		}
	}
	if err := d.each(snapshot.list("segments"), d.addSegment); err != nil {
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

// each calls use for the dictionaries of a list. Other values are counted.
func (d *decoder) each(values *object, use func(*object) error) error {
	if values == nil {
		return nil
	}
	for _, value := range values.items {
		if d.visits--; d.visits < 0 {
			return errTooMany
		}
		if err := d.b.Check(0); err != nil {
			return err
		}
		if dict, ok := value.(*object); !ok || !dict.isDict {
			d.b.Stats.Dropped++
		} else if err := use(dict); err != nil {
			return err
		}
	}
	return nil
}

// addEntry adds an entry of a device's history.
func (d *decoder) addEntry(device int64, entry *object) error {
	time := events.UnixNanos(entry.number("time_us"))
	if time == 0 {
		d.b.Stats.Dropped++
		return nil
	}
	if d.first == 0 {
		d.first = time
	}
	d.first, d.last = min(d.first, time), max(d.last, time)
	if entry.text("action") != "alloc" {
		return nil
	}
	stack, err := d.stack(entry)
	id := compact.Identity{Stack: stack, Attributes: d.place(device, entry.number("stream"))}
	d.b.Event(d.profiles[allocatedSpace], id, compact.Observation{Timestamp: time, Value: entry.number("size")})
	return err
}

// addSegment adds a segment that the allocator holds, and its blocks.
func (d *decoder) addSegment(segment *object) error {
	set := d.place(segment.number("device"), segment.number("stream"))
	stack, err := d.stack(segment)
	if err != nil {
		return err
	}
	d.observe(reservedSpace, compact.Identity{Stack: stack, Attributes: set}, segment.number("total_size"))
	return d.each(segment.list("blocks"), func(block *object) error {
		// active_awaiting_free is not free yet: another stream uses it.
		if !strings.HasPrefix(block.text("state"), "active") {
			return nil
		}
		stack, err := d.stack(block)
		id := compact.Identity{Stack: stack, Attributes: set}
		d.observe(inuseSpace, id, block.number("size"))
		d.observe(inuseObjects, id, 1)
		return err
	})
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

// stack interns the frames of a block, a segment or an entry of the history, the leaf first. Those that made the stack
// are left out.
func (d *decoder) stack(of *object) (dictionary.StackIndex, error) {
	frames := of.list("frames")
	if stack, ok := d.stacks[frames]; ok || frames == nil {
		return stack, nil
	}
	items := frames.items
	for len(items) > 1 && isOfCapture(items[0]) {
		items = items[1:]
	}
	hasPython := slices.ContainsFunc(items, isPython)
	d.scratch = d.scratch[:0]
	err := d.each(&object{items: items}, func(frame *object) error {
		if len(d.scratch) < maxDepth && !(hasPython && ofInterpreter.MatchString(frame.text("name"))) {
			d.scratch = append(d.scratch, d.frame(frame))
		}
		return nil
	})
	stack := d.b.Dict.Stacks.Intern(d.scratch)
	d.stacks[frames] = stack
	return stack, err
}

func isPython(value any) bool {
	frame, _ := value.(*object)
	return strings.HasSuffix(frame.text("filename"), ".py")
}

// isOfCapture reports whether a frame is of the code that makes a stack, which is on top of all of them.
func isOfCapture(value any) bool {
	frame, _ := value.(*object)
	return ofCapture.MatchString(frame.text("name"))
}

var (
	ofCapture = regexp.MustCompile(`unwind::unwind|CapturedTraceback::gather|gather_with_cpp`)
	// ofInterpreter matches frames of C that run a frame of Python, which is there, too.
	ofInterpreter = regexp.MustCompile(`^_?Py(Eval|Object|Function)_`)
)

func (d *decoder) frame(frame *object) int32 {
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
