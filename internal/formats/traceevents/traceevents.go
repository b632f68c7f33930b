// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package traceevents reads Chrome's trace events: the traces of PyTorch's profiler, as export_chrome_trace, Dynolog
// and vLLM write them, the CPU profiles of V8 in those of browsers, and the spans of any other tool. It returns, in one
// scope:
//
//	gpu_time/nanoseconds          kernels, copies and fills of memory: when they ran, under the launch and what called it
//	cpu_time/nanoseconds          ops, Python functions and calls of the runtime: the time that is their own, waiting included
//	gpu_launch_delay/nanoseconds  from the beginning of the launch to that of the kernel
//	gpu_memory                    allocated_space/bytes and freed_space/bytes of the allocator, if profile_memory was on
//	samples/count                 of a CPU profile of V8 (package cpuprofile); then there is nothing else
//	wall/nanoseconds              of another tool: the time of spans that is their own
//
// Decode reads the events as a stream, in any order (scan.go), and keeps a few numbers of each in a span of its thread
// or stream. Then walk goes over the spans of each thread in the order of time, which is how they nest (spans.go), and
// addKernel puts those of the streams under the stacks of their launches (torch.go). Times are microseconds since what
// the trace states, or Unix time, or end at the anchor.
package traceevents

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/cpuprofile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Options configure Decode.
type Options struct {
	events.Options
	// LaunchSizes adds AttributeGrid and AttributeBlock to samples of kernels.
	LaunchSizes bool
	// ReaderBytes is the memory that the reader of the trace takes.
	ReaderBytes int
}

// ErrNoProfile is the error for a document without events that are read.
var ErrNoProfile = errors.New("there are no events of PyTorch's profiler in the trace, no spans (events X, or B and E), " +
	"and no CPU profile of V8")

// What to do about a trace without events that are read.
const (
	recordV8 = "record that with the category disabled-by-default-v8.cpu_profiler, as the Performance panel of DevTools does"
	asList   = "it has events outside of a list: make one of them, jq -s . FILE"
	ofHermes = "it is a sampling profile of Hermes: convert it with npx react-native profile-hermes, " +
		"or hermes-profile-transformer"
	areAsync = "it has only asynchronous events (b and e, or S and F), which are of no thread"
)

// Decode returns the profiles of a trace of which r has the plain JSON.
func Decode(r io.Reader, options Options) (pprofile.Profiles, events.Stats, error) {
	d := newDecoder(r, options)
	return d.b.Run(options.Options, options.ReaderBytes, 0, func() error {
		err := d.read()
		switch isEmpty := d.first > d.last && d.v8 == nil; {
		case errors.Is(err, errBroken) && !d.isTorch && !isEmpty: // its program has ended so
		case err != nil:
			return fmt.Errorf("read JSON: %w", err)
		case isEmpty:
			return fmt.Errorf("%w: %s", ErrNoProfile, d.instead)
		}
		return d.finish()
	})
}

func newDecoder(r io.Reader, options Options) *decoder {
	d := &decoder{
		options: options, frames: map[frameKey]int32{}, callStacks: map[string]dictionary.StackIndex{},
		rank: none, worldSize: none, earliest: maxNanos, first: maxNanos, threads: map[idKey]*thread{},
		ranks:      map[string]int64{},
		instead:    recordV8,
		v8Profiles: map[idKey]*cpuprofile.Profile{},
	}
	d.scan = newScanner(r, d.b.Grow)
	d.callers[runtime], d.callers[op] = map[int64]caller{}, map[int64]caller{}
	e := &d.event
	d.fields = map[string]*[]byte{"ph": &e.phase, "cat": &e.category, "name": &e.name, "pid": &e.process,
		"tid": &e.thread, "id": &e.id, "ts": &e.time, "dur": &e.length, "args": &e.args}
	d.args = map[string]*[]byte{
		"correlation": &e.correlation, "External id": &e.external, "external id": &e.external, "Call stack": &e.callStack,
		"device": &e.device, "Device Id": &e.device, "Device Type": &e.deviceType, "stream": &e.stream, "Bytes": &e.size,
		"grid": &e.grid, "block": &e.block, "name": &e.threadName, "detail": &e.detail, "avg ms": &e.average,
		"filename": &e.file,
	}
	return d
}

type decoder struct {
	scan    *scanner
	b       events.Builder
	options Options

	// event is the one that is read; fields and args say where to put its fields and its arguments.
	event        event
	fields, args map[string]*[]byte

	// isTorch means that PyTorch's profiler has written the trace: one of its keys is before the events, or one of its
	// categories among the first events. Later ones can be those of another tool: kernel, runtime.
	isTorch bool
	// v8 is nil until there is a part of a CPU profile.
	v8         *cpuprofile.Reader
	v8Profiles map[idKey]*cpuprofile.Profile

	frames     map[frameKey]int32
	callStacks map[string]dictionary.StackIndex // by how they are written
	threads    map[idKey]*thread
	list       []*thread
	steps      []step
	// callers are what kernels may come from: calls of the runtime by correlation id, ops by external id. add adds the ids
	// of kernels, and walk finds them.
	callers   [numCategories]map[int64]caller
	keptBytes int // the memory of all of these
	// instead is what to do if there are no events that are read.
	instead string

	base            int64 // nanoseconds
	began           time.Time
	rank, worldSize int64
	ranks           map[string]int64 // in a trace of several
	earliest        int64            // event
	first, last     int64            // the times of all spans
	tree            *events.CallTree
	scope           compact.ScopeIndex
	profiles        [numProfiles]compact.ProfileIndex // of those with samples, plus one
}

// event has the fields of an event and of its args as they are written. They are valid until the next one is read.
type event struct {
	phase, category, name, process, thread, id, time, length, args []byte

	correlation, external, callStack, device, deviceType, stream, size, grid, block, threadName []byte

	// detail and average are clang's: what the event is about, and of how many events it is the sum. file is py-spy's.
	detail, average, file []byte
}

// thread is a thread of the processor, or a stream. name is an attribute.
type thread struct {
	process, id int64 // none if they are not numbers
	name        int32
	rank        int64 // what is added to the ids of its events
	rankName    int32
	spans       []span
	profiles    []*cpuprofile.Profile
}

// idKey has the ids of a thread or of a profile as they are written.
type idKey struct{ process, id string }

// read reads the document, which may be only the events.
func (d *decoder) read() error {
	s, key, isWhole := d.scan, "", false
	var closing []byte // the brackets that are open
	for s.opens = true; s.Scan(); {
		token, n := s.Bytes(), len(closing) // valid until the next one is read
		err := d.b.Check(d.keptBytes)
		switch {
		case err != nil:
		case isWhole && d.isTorch:
			return errMore
		case isWhole:
			return nil
		case s.opens && (token[0] == '[' || token[0] == '{' && n == 0):
			s.opens, closing = false, append(closing, token[0]+2)
		case s.opens, isEnd(token) && token[0] != closing[n-1]:
			err = fmt.Errorf("%w: found %q", errSyntax, token)
		case isEnd(token):
			closing, isWhole = closing[:n-1], n == 1
			s.opens = isWhole
		case closing[n-1] == ']':
			err = d.readEvent(token)
		case s.delimiter == ':':
			key = text(token)
			s.opens = key == "traceEvents"
		default:
			d.readField(key, token)
		}
		if err != nil {
			return err
		}
	}
	return s.end(isWhole)
}

func (d *decoder) readField(key string, value []byte) {
	var start, rank, worldSize []byte
	switch key {
	case "schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds":
		d.isTorch = d.isTorch || d.first > d.last
	}
	switch key {
	case "baseTimeNanoseconds":
		d.base = integer(value)
	case "beginningOfTime": // clang's
		d.base = int64(events.UnixNanos(integer(value)))
	case "otherData": // Bazel's
		if fields(value, map[string]*[]byte{"profile_start_ts": &start}); start != nil {
			d.base = int64(events.UnixNanos(integer(start)))
		}
	case "metadata": // DevTools'
		fields(value, map[string]*[]byte{"startTime": &start})
		d.began, _ = time.Parse(time.RFC3339, text(start))
	case "ph":
		d.instead = asList
	case "stackFrames":
		d.instead = ofHermes
	case "distributedInfo":
		fields(value, map[string]*[]byte{"rank": &rank, "world_size": &worldSize})
		d.rank, d.worldSize = integer(rank), integer(worldSize)
	}
}

func (d *decoder) readEvent(value []byte) error {
	e := &d.event
	*e = event{}
	if !fields(value, d.fields) {
		d.b.Stats.Dropped++
		return nil
	}
	start, hasTime := nanoseconds(inside(e.time))
	phase := string(inside(e.phase))
	if phase != "M" && start > 0 {
		d.earliest = min(d.earliest, start)
	}
	switch phase {
	case "M":
		d.readName(e)
	case "X", "B", "E", "i":
		is := d.categoryOf(e, phase)
		switch {
		case is == ignored, d.v8 != nil:
		case !hasTime:
			d.b.Stats.Dropped++
		default:
			length, hasLength := nanoseconds(inside(e.length))
			if !hasLength { // an event without one, or with one that is negative or no number
				d.b.Stats.Dropped += min(len(e.length), 1)
				length = 0
			}
			fields(e.args, d.args)
			d.add(e, span{start: start, end: start + length, is: is})
		}
	case "b", "e", "S", "F":
		d.instead = areAsync
	default:
		return d.readProfile(e, start)
	}
	return nil
}

// categoryOf returns what an event with a time is.
func (d *decoder) categoryOf(e *event, phase string) category {
	is, isKnown := categories[string(inside(e.category))]
	if is != ignored && !d.isTorch && d.scan.used <= firstBufferBytes {
		d.forget()
		d.isTorch = true
	}
	switch {
	case phase == "E":
		return end
	case is != ignored && d.isTorch:
		return is
	case !isKnown:
		d.b.CountUnread(text(e.category))
	}
	if d.isTorch || phase == "i" {
		return ignored
	}
	return other
}

// forget removes the spans so far.
func (d *decoder) forget() {
	for _, t := range d.list {
		t.spans = nil
	}
	d.first, d.last = maxNanos, 0
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
	t := d.threads[idKey{string(e.process), string(e.thread)}]
	if t == nil {
		t = &thread{process: integer(e.process), id: integer(e.thread)}
		label, process, isOfRank := strings.Cut(strings.TrimPrefix(text(e.process), "["), "] ")
		if isOfRank {
			t.process, t.rank, t.rankName = integer([]byte(process)), d.rankOf(label), d.rankName(label)
		}
		if t.id == none {
			t.name = d.b.TextAttribute(events.AttributeThreadName, text(e.thread))
		}
		d.threads[idKey{string(e.process), string(e.thread)}] = t
		d.list = append(d.list, t)
		d.keptBytes += threadBytes + len(e.process) + len(e.thread)
	}
	return t
}

// rankOf returns what to add to the ids of a process's events, which each rank counts from 1: tools that put the traces
// of all ranks into one write its process as [TP01] 4711.
func (d *decoder) rankOf(label string) int64 {
	if d.ranks[label] == 0 {
		d.ranks[label] = int64(len(d.ranks)+1) << 48
		d.keptBytes += entryBytes + len(label)
	}
	return d.ranks[label]
}

// rankName returns the attribute of samples for a label: the number in TP01, and the whole of others, such as
// TP01-DP00, which have several.
func (d *decoder) rankName(label string) int32 {
	if rank, err := strconv.ParseInt(strings.TrimLeft(label, letters), 10, 64); err == nil {
		return d.number(AttributeRank, rank)
	}
	return d.b.TextAttribute(AttributeRank, label)
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

func (d *decoder) attributesOf(t *thread) dictionary.AttributeSetIndex {
	return d.b.AddAttributes(0, d.number(events.AttributeProcessID, t.process), d.number(events.AttributeThreadID, t.id),
		t.name, t.rankName)
}

func (d *decoder) number(key string, value int64) int32 {
	return d.b.NumberAttribute(key, value, value != none)
}

// readProfile reads an event that has a part of a CPU profile of V8.
func (d *decoder) readProfile(e *event, start int64) error {
	name := string(inside(e.name))
	switch name {
	case "Profile", "ProfileChunk", "CpuProfile": // the last one is that of Chrome up to 66
	default:
		return nil
	}
	if d.v8 == nil {
		d.forget()
		d.v8 = cpuprofile.NewReader(&d.b)
	}
	key := idKey{string(e.process), cmp.Or(string(e.id), string(e.thread))}
	p := d.v8Profiles[key]
	if p == nil {
		p = d.v8.NewProfile()
		d.v8Profiles[key] = p
		d.keptBytes += threadBytes + len(key.process) + len(key.id)
	}
	if name != "ProfileChunk" { // which the profiler's own thread writes
		t := d.thread(e)
		t.profiles = append(t.profiles, p)
	}
	return d.v8.AddPart(p, float64(start)/1000, e.args)
}

// finish adds the samples of all events, whose clock is the same one.
func (d *decoder) finish() error {
	if began := d.began.Unix(); d.earliest < events.Year2000*1e9 && began >= events.Year2000 && began < events.Year2100 {
		d.base = d.began.UnixNano() - d.earliest
	}
	zero := uint64(max(d.base, 0))
	if !d.isTorch { // others' categories are their own
		d.b.Stats.Unread = nil
	}
	if d.v8 != nil {
		for _, t := range d.list {
			for _, p := range t.profiles {
				p.Attributes = d.attributesOf(t)
			}
		}
		return d.v8.AddSamples(d.scan.used, zero)
	}
	if len(d.ranks) > 0 { // distributedInfo is that of one of them
		d.rank = none
	}
	if err := d.addSpans(); err != nil {
		return err
	}
	d.b.Shift(zero)
	d.b.SetClock()
	return nil
}
