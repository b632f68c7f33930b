// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package jfr reads recordings of Java Flight Recorder, which the JDK, async-profiler, Datadog's profiler and
// Pyroscope's Java agent write.
//
//	pd, stats, err := jfr.Decode(data, jfr.Options{})
//
// data is the uncompressed file, with any number of chunks. Decode is a pure function, and keeps nothing of data. Its
// steps:
//
//	parseLabels    reads the labels that Pyroscope's Java agent sends beside a recording (context.go)
//	openChunk      reads the header of a chunk (chunk.go), its classes (metadata.go), and where its constants are (pools.go)
//	readSettings   reads the recorder's settings, which hold for the chunk (settings.go)
//	readEvents     reads the events of the classes in eventReaders (events.go), and counts the others that have a stack
//	stack          interns a stack trace, whose methods are interned once for each chunk (stacks.go)
//	sampleOf       its thread, labels and span, as attributes and a link (context.go)
//	endChunk       the times of the profiles: that of the recording, or if the settings changed, of the chunks with theirs
//
// A recording costs no more than its bytes: counts are checked against what follows them (cursor.go), constant pools
// must not overlap, and constants are read where they are, when something refers to them.
//
// Every event keeps its time. The profiles, by the scope attribute pprof.scope.profile_name, with Pyroscope's names for
// the
// types:
//
//	process_cpu   samples/count, timestamps alone; the period is the recording's, or else Options.Period
//	process_cpu   cpu/nanoseconds, for events that state their own time
//	wall          wall/nanoseconds, ending at the timestamp
//	memory        alloc_in_new_tlab_*, alloc_outside_tlab_*, alloc_sample_*, malloc_* in objects/count and bytes/bytes; live/count, live_bytes
//	mutex         delay/nanoseconds and contentions/count: waiting for a monitor or a native lock, ending at the timestamp
//	block         delay/nanoseconds and contentions/count: parked threads, ending at the timestamp
//	method_trace  duration/nanoseconds and calls/count: calls of traced methods, ending at the timestamp
//	file_io       file_io_read_time/nanoseconds and file_io_read_size/bytes, the same of file_io_write, ending at the timestamp
//	socket_io     socket_read_time, socket_read_size, the same of socket_write
//	gc            gc_pause_time/nanoseconds and gc_collections/count, ending at the timestamp; the stack is the collector and the cause
//	page-faults   and any other event that async-profiler samples by, in count
//
// An event with a length is a value, with its end as the timestamp. If each event counts as one, samples have only
// timestamps. Live objects are a state: they have a value and no timestamp, and the last state counts. If the period
// changes, there is a profile for each period.
package jfr

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
)

// Options are what a recording does not state itself. The zero value is fine.
type Options struct {
	// Options has no use for an Anchor: every chunk states its time.
	events.Options
	// Labels is a LabelsSnapshot, as Pyroscope's Java agent sends it, in protobuf without compression. It may be empty.
	Labels []byte
	// Period is the time between two samples of CPU or wall clock time, for recordings that do not state it. 0 means 10
	// ms.
	Period time.Duration
}

// ErrNotJFR is the error for data that does not begin as a recording does.
var ErrNotJFR = errors.New("not a recording of Java Flight Recorder")

// Decode returns the profiles of a recording, on a resource without attributes. A recording without events of interest
// makes no profiles. Events whose time is impossible are dropped. The error is ErrNotJFR, or describes what is wrong
// with the recording or the labels.
func Decode(data []byte, options Options) (pprofile.Profiles, events.Stats, error) {
	if !bytes.HasPrefix(data, []byte(chunkMagic)) {
		return pprofile.NewProfiles(), events.Stats{}, ErrNotJFR
	}
	d := decoder{options: options, data: data, nameBytes: nameBytesPerByte*len(data) + 1<<20,
		profiles: map[profileKey]compact.ProfileIndex{}, seen: map[*definition]bool{}, contexts: map[int64][]int32{}}
	d.longest = max(options.MaxStringBytes, events.DefaultMaxStringBytes) + 1
	return d.Run(options.Options, parserFactor*len(data), 0, func() (err error) {
		if d.labels, err = parseLabels(options.Labels); err != nil {
			return err
		}
		d.Stats.LeftOutAttributes, d.Stats.Truncated = d.labels.leftOut, d.labels.truncated
		d.resource = d.Resource(pcommon.NewResource(), "")
		if err := d.read(); options.Meter.Err() != nil {
			return options.Meter.Err()
		} else if err != nil {
			return fmt.Errorf("read recording: %w", err)
		}
		d.observeOldObjects()
		d.endChunk()
		return nil
	})
}

const (
	// nameBytesPerByte bounds the names of methods. Each consists of two strings, which other methods can share.
	nameBytesPerByte = 16
	// parserFactor is the memory of what is known about events.
	parserFactor = 4
)

var errNames = fmt.Errorf("%w: the names of its methods together", events.ErrTooLarge)

type decoder struct {
	events.Builder
	options   Options
	data      []byte
	labels    labels
	nameBytes int // how many more bytes names of methods may have
	longest   int // of a string that is read
	resource  compact.ResourceIndex

	chunk chunk
	// chunkBytes is the memory of the chunk's tables, and largestChunk the largest so far.
	chunkBytes, largestChunk int
	settings                 settings
	since                    uint64 // when they began to hold
	event                    event
	profiles                 map[profileKey]compact.ProfileIndex
	seen                     map[*definition]bool // those of the profiles
	contexts                 map[int64][]int32    // attributes, by number in labels
	// oldObjects are those of the last state.
	oldObjects   []oldObject
	oldObjectsAt uint64

	// Scratch.
	stackScratch []int32
}

// read makes samples of all events.
func (d *decoder) read() error {
	for start := 0; start < len(d.data); start += d.chunk.size {
		if err := d.Check(0); err != nil {
			return err
		}
		err := d.openChunk(start)
		if err == nil {
			if err = d.readEvents(start); err == nil {
				d.endChunk()
			}
		}
		if err != nil {
			return fmt.Errorf("chunk at byte %d: %w", start, err)
		}
	}
	return nil
}

// endChunk widens the profiles to the chunk, if they have its settings.
func (d *decoder) endChunk() {
	for of := range d.seen {
		if p, ok := d.profiles[d.keyOf(of)]; ok {
			d.Widen(p, d.since, d.chunk.end-1)
		}
	}
}

// readEvents reads the settings of a chunk, and then all other events: the recorder writes them in no order.
func (d *decoder) readEvents(start int) error {
	var own settings
	hasOwn := false
	err := d.eachEvent(start, func(c *cursor, of *class) error {
		if of.name != settingClass {
			return nil
		}
		if err := d.readEvent(c, of); err != nil {
			return err
		}
		hasOwn = true
		if set := d.chunk.classes[int64(d.event.get(slotID))]; set != nil {
			own.read(set.name, d.event.name, d.event.value)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if hasOwn && own != d.settings || d.since == 0 {
		d.settings, d.since = own, d.chunk.start
	}
	d.since = min(d.since, d.chunk.start)
	return d.eachEvent(start, func(c *cursor, of *class) error {
		if err := d.Check(0); err != nil {
			return err
		}
		switch {
		case of.read != nil:
			if err := d.readEvent(c, of); err != nil {
				return err
			}
			return of.read(d, &d.event)
		case of.hasStack:
			d.countUnread(c, of)
		}
		return nil
	})
}

// settingClass is the event of a setting.
const settingClass = "jdk.ActiveSetting"

// countUnread counts an event of another class if it has a stack.
func (d *decoder) countUnread(c *cursor, of *class) {
	if d.readEvent(c, of) != nil || d.event.get(slotStackTrace) != 0 {
		d.CountUnread(of.name)
	}
}

// eachEvent calls visit for each event of a known class. The cursor ends where the event does.
func (d *decoder) eachEvent(start int, visit func(c *cursor, of *class) error) error {
	end := start + d.chunk.size
	for at := start + chunkHeaderBytes; at < end; {
		c := &cursor{data: d.data, pos: at, end: end}
		size, id := c.number(), c.number()
		if size == 0 || size > uint64(end-at) {
			return fmt.Errorf("events: byte %d: a size of %d", at, size)
		}
		if c.err != nil {
			return fmt.Errorf("events: byte %d: %w", at, c.err)
		}
		if of := d.chunk.classes[int64(id)]; of != nil {
			c.end = at + int(size)
			if err := visit(c, of); err != nil {
				return fmt.Errorf("byte %d: %.100s: %w", at, of.name, err)
			}
		}
		at += int(size)
	}
	return nil
}
