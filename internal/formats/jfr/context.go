// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// Attributes of samples: Pyroscope's names for a span without a trace, a trace without a span, and a span's name.
const (
	attributeSpanID   = "profile_id"
	attributeTraceID  = "trace_id"
	attributeSpanName = "span_name"
)

// origin is what an event has besides its stack and values.
type origin struct {
	thread constantKey
	state  string
	span
}

// span is what Pyroscope's Java agent adds: the number of a context of labels, a span with the number of its name, a
// trace.
type span struct{ context, id, name, traceHi, traceLo uint64 }

// interned is an origin in the dictionary.
type interned struct {
	attributes dictionary.AttributeSetIndex
	link       dictionary.LinkIndex
}

// constantOf returns what a field of an event refers to.
func (e *event) constantOf(s slot) (of constantKey) {
	if f := e.fields[s]; f != nil && f.isPool {
		of.of = f.of
	}
	of.key = e.get(s)
	return of
}

// sampleOf returns the identity of an event's samples.
func (d *decoder) sampleOf(e *event, state string) (compact.Identity, error) {
	from := origin{thread: e.constantOf(slotThread), state: state, span: span{
		e.get(slotContext), e.get(slotSpan), e.get(slotSpanName), e.get(slotTraceHi), e.get(slotTraceLo),
	}}
	stack, err := d.stack(e)
	if err != nil {
		return compact.Identity{}, err
	}
	known, ok := d.chunk.origins[from]
	if !ok {
		if err := d.Grow(originBytes); err != nil {
			return compact.Identity{}, err
		}
		known = d.intern(&from)
		d.chunk.origins[from] = known
	}
	return compact.Identity{Stack: stack, Attributes: known.attributes, Link: known.link}, nil
}

// originBytes is the memory of an origin, and of the names of its thread and its state. They are in maps, which double.
const originBytes = 256 + 2*longestWord

func (d *decoder) intern(from *origin) (in interned) {
	own := append(slices.Clip(d.thread(from.thread)),
		d.TextAttribute(events.AttributeThreadState, strings.TrimPrefix(from.state, "STATE_")),
		d.TextAttribute(attributeSpanName, d.labels.strings[int64(from.name)]))
	hasTrace := from.traceHi|from.traceLo != 0
	switch {
	case from.id != 0 && hasTrace:
		var link dictionary.Link
		binary.BigEndian.PutUint64(link.TraceID[:8], from.traceHi)
		binary.BigEndian.PutUint64(link.TraceID[8:], from.traceLo)
		binary.BigEndian.PutUint64(link.SpanID[:], from.id)
		in.link = d.Dict.Links.Intern(link)
	case from.id != 0:
		own = append(own, d.TextAttribute(attributeSpanID, fmt.Sprintf("%016x", from.id)))
	case hasTrace:
		own = append(own, d.TextAttribute(attributeTraceID, fmt.Sprintf("%016x%016x", from.traceHi, from.traceLo)))
	}
	all := slices.Clip(own)
	for _, label := range d.context(int64(from.context)) {
		if !d.hasKey(own, label) {
			all = append(all, label)
		}
	}
	in.attributes = d.AddAttributes(0, all...)
	return in
}

// thread returns the attributes of a thread, or zeros.
func (d *decoder) thread(ref constantKey) []int32 {
	if known, ok := d.chunk.threads[ref]; ok {
		return known
	}
	var attributes []int32
	if c, of, ok := d.constant(&field{of: ref.of, isPool: true}, ref.key); ok {
		var osID, javaID uint64
		var osName, javaName string
		c.visit(of, func(f *field) bool {
			switch {
			case f.name == "osThreadId" && f.kind == kindNumber && !f.isArray:
				osID = c.number()
			case f.name == "javaThreadId" && f.kind == kindNumber && !f.isArray:
				javaID = c.number()
			case f.name == "osName" && f.kind == kindString && !f.isArray:
				osName = d.string(&c, f, maxLabelBytes+1)
			case f.name == "javaName" && f.kind == kindString && !f.isArray:
				javaName = d.string(&c, f, maxLabelBytes+1)
			default:
				return false
			}
			return true
		})
		id := cmp.Or(javaID, osID) // a thread that is not Java's has no id of Java
		name := cmp.Or(javaName, osName)
		if len(name) > maxLabelBytes { // many threads can refer to one long string
			name = dictionary.CutUTF8(name, maxLabelBytes)
			d.Stats.Truncated++
		}
		attributes = []int32{d.NumberAttribute(events.AttributeThreadID, int64(id), id != 0),
			d.TextAttribute(events.AttributeThreadName, name)}
	}
	d.chunk.threads[ref] = attributes
	return attributes
}

// longestWord is the longest name of a thread's state, of a collector or of a cause. Every event can refer to another
// one.
const longestWord = 64

// state returns the name of a thread's state, or "".
func (d *decoder) state(e *event) string {
	if state := d.wordOf(e, slotState); len(state) <= longestWord {
		return state
	}
	return ""
}

// wordOf returns the name of a constant that a field of an event refers to. One above longestWord is cut there, but
// longer.
func (d *decoder) wordOf(e *event, s slot) string {
	ref := e.constantOf(s)
	word, known := d.chunk.words[ref]
	if !known {
		word = d.symbol(e.fields[s], ref.key, longestWord+1)
		d.chunk.words[ref] = word
	}
	return word
}

// context returns the labels of a context as attributes, the first of each key.
func (d *decoder) context(number int64) []int32 {
	attributes, known := d.contexts[number]
	if known {
		return attributes
	}
	for _, l := range d.labels.contexts[number] {
		key, value := d.CleanString(d.labels.strings[l.key]), d.labels.strings[l.value]
		if label := d.TextAttribute(key, value); key != "" && value != "" && !d.hasKey(attributes, label) {
			attributes = append(attributes, label)
		}
	}
	d.contexts[number] = attributes
	return attributes
}

// hasKey reports whether one of the attributes has the key of another.
func (d *decoder) hasKey(attributes []int32, other int32) bool {
	key := func(i int32) dictionary.StringIndex { return d.Dict.Attributes.At(dictionary.AttributeIndex(i)).Key }
	return slices.ContainsFunc(attributes, func(i int32) bool { return key(i) == key(other) })
}

// labels are what Pyroscope's Java agent sends beside a recording (LabelsSnapshot). An event has the number of a
// context, and perhaps that of a span's name.
type labels struct {
	contexts map[int64][]label
	strings  map[int64]string
	// leftOut is the number of labels beyond maxLabels, truncated that of values above maxLabelBytes.
	leftOut, truncated int
}

// label is a key and a value, as numbers of strings.
type label struct{ key, value int64 }

// maxLabels bounds the labels of a context, and maxLabelBytes the value of a label: every event can refer to the same
// ones. Pyroscope itself accepts 30 labels, and values of this size.
const maxLabels, maxLabelBytes = 32, 2048

var errLabels = errors.New("the labels are not a LabelsSnapshot")

// parseLabels reads
//
//	message Context { map<int64, int64> labels = 1; }
//	message LabelsSnapshot { map<int64, Context> contexts = 1; map<int64, string> strings = 2; }
func parseLabels(data []byte) (labels, error) {
	l := labels{contexts: map[int64][]label{}, strings: map[int64]string{}}
	err := eachEntry(data, func(number protowire.Number, entry label, content []byte) error {
		switch number {
		case 1:
			var context []label
			err := eachEntry(content, func(number protowire.Number, entry label, _ []byte) error {
				switch {
				case number != 1:
				case len(context) < maxLabels:
					context = append(context, entry)
				default:
					l.leftOut++
				}
				return nil
			})
			l.contexts[entry.key] = context
			return err
		case 2:
			value := string(content)
			if len(value) > maxLabelBytes {
				l.truncated++
				value = strings.Clone(dictionary.CutUTF8(value, maxLabelBytes))
			}
			l.strings[entry.key] = value
		}
		return nil
	})
	return l, err
}

// eachEntry calls visit for each entry of the maps in a message: with the number of the map's field, and the value as a
// number and as bytes.
func eachEntry(message []byte, visit func(number protowire.Number, entry label, content []byte) error) error {
	r := wire.New(message)
	for r.Next() {
		key, value, ok := wire.Pair(r.Content)
		if !ok {
			return errLabels
		}
		if err := visit(r.Number, label{key: int64(key.Value), value: int64(value.Value)}, value.Content); err != nil {
			return err
		}
	}
	if r.IsMalformed() {
		return errLabels
	}
	return nil
}
