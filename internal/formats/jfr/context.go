// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/grafana/jfr-parser/parser/types"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Attributes of samples: Pyroscope's names for a span without a trace, a trace without a span, and a span's name.
const (
	attributeSpanID   = "profile_id"
	attributeTraceID  = "trace_id"
	attributeSpanName = "span_name"
)

// origin is what an event has besides its stack and values.
type origin struct {
	thread types.ThreadRef
	state  string
	span
}

// span is what Pyroscope's Java agent adds: the number of a context of labels, a span with the number of its name, a trace.
type span struct{ context, id, name, traceHi, traceLo uint64 }

// interned is an origin in the dictionary.
type interned struct {
	attributes dictionary.AttributeSetIndex
	link       dictionary.LinkIndex
}

func (d *decoder) sampleOf(trace types.StackTraceRef, from origin) (compact.Identity, error) {
	stack, err := d.stack(trace)
	if err != nil {
		return compact.Identity{}, err
	}
	known, ok := d.chunk.origins[from]
	if !ok {
		known = d.intern(&from)
		d.chunk.origins[from] = known
	}
	return compact.Identity{Stack: stack, Attributes: known.attributes, Link: known.link}, nil
}

func (d *decoder) intern(from *origin) (in interned) {
	d.attributes = append(d.attributes[:0], d.thread(from.thread)...)
	d.addString(events.AttributeThreadState, strings.TrimPrefix(from.state, "STATE_"))
	hasTrace := from.traceHi|from.traceLo != 0
	switch {
	case from.id != 0 && hasTrace:
		var link dictionary.Link
		binary.BigEndian.PutUint64(link.TraceID[:8], from.traceHi)
		binary.BigEndian.PutUint64(link.TraceID[8:], from.traceLo)
		binary.BigEndian.PutUint64(link.SpanID[:], from.id)
		in.link = d.Dict.Links.Intern(link)
	case from.id != 0:
		d.addString(attributeSpanID, fmt.Sprintf("%016x", from.id))
	case hasTrace:
		d.addString(attributeTraceID, fmt.Sprintf("%016x%016x", from.traceHi, from.traceLo))
	}
	d.addString(attributeSpanName, d.labels.strings[int64(from.name)])
	own := len(d.attributes)
	for _, label := range d.context(int64(from.context)) {
		if !d.hasKey(d.attributes[:own], d.key(label)) {
			d.attributes = append(d.attributes, label)
		}
	}
	in.attributes = d.Dict.AttributeSets.Intern(d.attributes)
	return in
}

func (d *decoder) thread(ref types.ThreadRef) []int32 {
	if known, ok := d.chunk.threads[ref]; ok {
		return known
	}
	d.attributes = d.attributes[:0]
	if i, ok := d.parser.Threads.IDMap[ref]; ok {
		thread := &d.parser.Threads.Thread[i]
		id, name := thread.JavaThreadId, thread.JavaName
		if id == 0 { // not a Java thread
			id = thread.OsThreadId
		}
		if name == "" {
			name = thread.OsName
		}
		if id != 0 {
			d.add(events.AttributeThreadID, dictionary.IntValue(int64(id)))
		}
		d.addString(events.AttributeThreadName, name)
	}
	attributes := slices.Clone(d.attributes)
	d.chunk.threads[ref] = attributes
	return attributes
}

func (d *decoder) context(number int64) []int32 {
	if known, ok := d.contexts[number]; ok {
		return known
	}
	outer := d.attributes
	d.attributes = nil
	for _, l := range d.labels.contexts[number] {
		d.addString(d.labels.strings[l.key], d.labels.strings[l.value])
	}
	if d.contexts == nil {
		d.contexts = map[int64][]int32{}
	}
	attributes := d.attributes
	d.contexts[number], d.attributes = attributes, outer
	return attributes
}

// addString adds an attribute unless its key or value is empty, or another attribute has the key.
func (d *decoder) addString(key, value string) {
	if key != "" && value != "" {
		d.add(d.CleanString(key), dictionary.StringValue(d.CleanString(value)))
	}
}

func (d *decoder) add(key string, value dictionary.Value) {
	if index := d.Dict.Strings.Intern(key); !d.hasKey(d.attributes, index) {
		d.attributes = append(d.attributes, d.Attribute(key, value))
	}
}

func (d *decoder) hasKey(attributes []int32, key dictionary.StringIndex) bool {
	return slices.ContainsFunc(attributes, func(i int32) bool { return d.key(i) == key })
}

func (d *decoder) key(attribute int32) dictionary.StringIndex {
	return d.Dict.Attributes.At(dictionary.AttributeIndex(attribute)).Key
}
