// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"bytes"
	"encoding/base64"
	"sync"

	"github.com/klauspost/compress/gzip"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// pprofWriter writes profiles as the pprof of Splunk's records: without sample types; an observation is a sample with
// its time and period as labels, and has a value only where it says more than that something was seen.
type pprofWriter struct {
	dict pprofile.ProfilesDictionary
	// out is the pprof so far.
	out   wire
	texts map[string]uint64
	// textOf is the pprof's index of the dictionary's strings, and labelsOf the labels of its attributes, by index
	// there: many samples and functions can share a long one. 0 and nil are not known yet.
	textOf   memo[uint64]
	labelsOf memo[wire]
	// Entries of the dictionary that are written, by index. Their ids are their indices + 1.
	mappings, locations, functions memo[bool]

	// What the observations of one sample share, and one observation.
	shared, message, oneLabel wire
	ids                       wire
}

// memo holds a value for the entries of a table of the dictionary that one pprof refers to. Many small profiles can
// share a large dictionary, so that emptying it costs no more than what was set.
type memo[T any] struct {
	values []T
	filled []int32
}

func (m *memo[T]) reset(entries int) {
	if len(m.values) != entries {
		m.values = make([]T, entries)
	} else {
		var none T
		for _, i := range m.filled {
			m.values[i] = none
		}
	}
	m.filled = m.filled[:0]
}

func (m *memo[T]) set(i int32, value T) {
	m.values[i] = value
	m.filled = append(m.filled, i)
}

// The field numbers of github.com/google/pprof/proto/profile.proto.
const (
	fieldSample   = 2
	fieldMapping  = 3
	fieldLocation = 4
	fieldFunction = 5
	fieldString   = 6

	fieldSampleLocation = 1
	fieldSampleValue    = 2
	fieldSampleLabel    = 3
)

// write writes a pprof of one profile's samples, until it is larger than room. It returns the number of observations
// in it, one at least, and that of their frames.
func (w *pprofWriter) write(p pprofile.Profile, typ Type, s *sink, room int) (written, frames int) {
	dict := s.dict
	w.dict, w.out = dict, w.out[:0]
	w.texts = map[string]uint64{"": 0}
	w.out = w.out.text(fieldString, "")
	w.textOf.reset(dict.StringTable().Len())
	w.labelsOf.reset(dict.AttributeTable().Len())
	w.mappings.reset(dict.MappingTable().Len())
	w.locations.reset(dict.LocationTable().Len())
	w.functions.reset(dict.FunctionTable().Len())
	period := int64(0)
	if typ == TypeCPU {
		period = periodOfProfile(dict, p)
	}
	for _, sample := range p.Samples().All() {
		stack := dict.StackTable().At(int(sample.StackIndex())).LocationIndices()
		w.share(stack, sample, period)
		for m := range moments(p, sample) {
			if written > 0 && len(w.out) > room {
				return written, frames
			}
			w.message = append(w.message[:0], w.shared...)
			if m.counted || typ == TypeAllocation {
				// A list of one, since 0 is a value too.
				w.message = w.message.bytes(fieldSampleValue, wire(nil).varint(uint64(m.value)))
			}
			if m.time != 0 {
				w.message = w.numberLabel(w.message, keyEventTime, int64(m.time/millisecond), "")
			}
			if m.time%millisecond != 0 {
				w.message = w.numberLabel(w.message, keyEventTimeNanos, int64(m.time), "")
			}
			w.out = w.out.bytes(fieldSample, w.message)
			written++
			frames += s.framesOf(sample.StackIndex())
		}
	}
	return written, frames
}

// share writes what all observations of a sample have in common.
func (w *pprofWriter) share(stack pcommon.Int32Slice, sample pprofile.Sample, period int64) {
	w.ids = w.ids[:0]
	for _, i := range stack.All() {
		w.location(i)
		w.ids = w.ids.varint(uint64(i) + 1)
	}
	w.shared = w.shared[:0]
	if len(w.ids) > 0 {
		w.shared = w.shared.bytes(fieldSampleLocation, w.ids)
	}
	if period != 0 {
		w.shared = w.numberLabel(w.shared, keyEventPeriod, period/millisecond, "")
		if period%millisecond != 0 {
			w.shared = w.numberLabel(w.shared, keyEventPeriodNanos, period, "")
		}
	}
	if i := sample.LinkIndex(); i != 0 {
		link := w.dict.LinkTable().At(int(i))
		w.shared = w.textLabel(w.shared, keyTraceID, link.TraceID().String())
		w.shared = w.textLabel(w.shared, keySpanID, link.SpanID().String())
	}
	for _, i := range sample.AttributeIndices().All() {
		if w.labelsOf.values[i] == nil {
			attribute := w.dict.AttributeTable().At(int(i))
			key := w.dict.StringTable().At(int(attribute.KeyStrindex()))
			unit := w.dict.StringTable().At(int(attribute.UnitStrindex()))
			w.labelsOf.set(i, w.label(nil, key, unit, attribute.Value()))
		}
		w.shared = append(w.shared, w.labelsOf.values[i]...)
	}
}

// label writes an attribute: text and numbers as they are, an array as a label for each element.
func (w *pprofWriter) label(to wire, key, unit string, value pcommon.Value) wire {
	switch value.Type() {
	case pcommon.ValueTypeInt:
		return w.numberLabel(to, key, value.Int(), unit)
	case pcommon.ValueTypeSlice:
		if labelsAlone(value.Slice()) {
			for _, element := range value.Slice().All() {
				to = w.label(to, key, unit, element)
			}
			return to
		}
	case pcommon.ValueTypeMap:
		if n, of, ok := quantity(value); ok {
			return w.numberLabel(to, key, n, of)
		}
	}
	return w.textLabel(to, key, value.AsString())
}

// labelsAlone reports whether all elements are what a label can say, and they are more than one: a single label reads as
// its value.
func labelsAlone(elements pcommon.Slice) bool {
	for _, element := range elements.All() {
		_, _, isQuantity := quantity(element)
		if element.Type() != pcommon.ValueTypeStr && element.Type() != pcommon.ValueTypeInt && !isQuantity {
			return false
		}
	}
	return elements.Len() > 1
}

// quantity reads a map of a value and its unit.
func quantity(value pcommon.Value) (n int64, unit string, ok bool) {
	if value.Type() != pcommon.ValueTypeMap || value.Map().Len() != 2 {
		return 0, "", false
	}
	number, okNumber := value.Map().Get("value")
	text, okUnit := value.Map().Get("unit")
	if !okNumber || !okUnit || number.Type() != pcommon.ValueTypeInt || text.Type() != pcommon.ValueTypeStr {
		return 0, "", false
	}
	return number.Int(), text.Str(), true
}

func (w *pprofWriter) textLabel(to wire, key, text string) wire {
	w.oneLabel = w.oneLabel[:0].number(1, w.text(key)).number(2, w.labelText(text))
	return to.bytes(fieldSampleLabel, w.oneLabel)
}

func (w *pprofWriter) numberLabel(to wire, key string, n int64, unit string) wire {
	w.oneLabel = w.oneLabel[:0].number(1, w.text(key)).number(3, uint64(n))
	if unit != "" || n == 0 {
		// A number 0 without a unit would be no label.
		w.oneLabel = w.oneLabel.number(4, w.labelText(unit))
	}
	return to.bytes(fieldSampleLabel, w.oneLabel)
}

// tableText returns the index of an entry of the dictionary's string table.
func (w *pprofWriter) tableText(index int32) uint64 {
	if index != 0 && w.textOf.values[index] == 0 {
		w.textOf.set(index, w.text(w.dict.StringTable().At(int(index))))
	}
	return w.textOf.values[index]
}

// text gives the index of a string.
func (w *pprofWriter) text(s string) uint64 {
	i, ok := w.texts[s]
	if !ok {
		i = w.appendText(s)
		w.texts[s] = i
	}
	return i
}

// anotherEmpty is a key that no text has, for the second empty string of the table: an index of 0 is none.
const anotherEmpty = "\xff"

func (w *pprofWriter) labelText(s string) uint64 {
	if s != "" {
		return w.text(s)
	}
	i, ok := w.texts[anotherEmpty]
	if !ok {
		i = w.appendText("")
		w.texts[anotherEmpty] = i
	}
	return i
}

func (w *pprofWriter) appendText(s string) uint64 {
	i := len(w.texts)
	w.out = w.out.text(fieldString, s)
	return uint64(i)
}

// body gives the pprof as the text that a record carries.
func (w *pprofWriter) body() string {
	z := gzips.Get().(*gzip.Writer)
	defer gzips.Put(z)
	var compressed bytes.Buffer
	z.Reset(&compressed)
	// Writing to a buffer does not fail.
	_, _ = z.Write(w.out)
	_ = z.Close()
	return base64.StdEncoding.EncodeToString(compressed.Bytes())
}

// A writer's tables are near a megabyte: making one costs more than compressing an agent's usual record.
var gzips = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}
