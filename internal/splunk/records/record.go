// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// record is the fields and attributes of one profiling record.
type record struct {
	log    plog.LogRecord
	format Format
	typ    Type
	source Source
	// formatName and typeName are as they were sent, for error messages.
	formatName, typeName string
	// time and period are in nanoseconds, 0 if they are not known.
	time, period int64
	// timeNanos is an attribute that is more exact than a time in milliseconds.
	timeNanos int64
	allocated int64
	link      dictionary.Link // zero for none
	// described reports that the record has a description of its profile.
	described   bool
	description description
}

// read reads what all formats have in common.
func (r *record) read(log plog.LogRecord, badTimes *int) {
	*r = record{log: log, description: description{shape: shapeNamed(""), spans: true}}
	var trace, span string
	var periodNanos int64
	for key, value := range log.Attributes().All() {
		switch key {
		case keyFormat:
			r.formatName = value.AsString()
		case keyType:
			r.typeName = value.AsString()
		case keySource:
			if name := value.AsString(); name != "" {
				r.source = valueNamed(name, SourceOther)
			}
		case keyEventPeriod:
			millis, ok := number(value)
			r.period = millisToNanos(millis, ok, maxPeriodMillis, badTimes)
		case keyEventPeriodNanos:
			periodNanos, _ = number(value)
		case keyAllocated:
			r.allocated, _ = number(value)
		case KeyTraceID:
			trace = value.AsString()
		case KeySpanID:
			span = value.AsString()
		case KeyEventTimeNanos:
			r.timeNanos, _ = number(value)
		default:
			r.readDescription(key, value)
		}
	}
	r.period = exactTime(r.period, periodNanos)
	r.setTime(badTimes)
	if traceID, spanID := log.TraceID(), log.SpanID(); !traceID.IsEmpty() && !spanID.IsEmpty() {
		r.link = dictionary.Link{TraceID: traceID, SpanID: spanID}
	} else {
		r.link, _ = dictionary.ParseLink(trace, span)
	}
	r.classify()
}

func (r *record) setTime(badTimes *int) {
	stamp := r.log.Timestamp()
	if stamp == 0 && !r.described {
		stamp = r.log.ObservedTimestamp()
	}
	if stamp > math.MaxInt64 {
		*badTimes++
		return
	}
	r.time = int64(stamp)
	// HEC's time is in milliseconds, rounded.
	if off := r.timeNanos - r.time; r.timeNanos > 0 && -millisecond < off && off < millisecond {
		r.time = r.timeNanos
	}
	if r.described && !r.description.spans {
		r.description.time = r.time
	}
}

// classify sets format and type. Early agents wrote neither.
func (r *record) classify() {
	if r.format = valueNamed(r.formatName, FormatOther); r.formatName == "" {
		r.format = FormatText
		// The base64 of gzip's first three bytes.
		if body := r.log.Body(); body.Type() == pcommon.ValueTypeBytes || strings.HasPrefix(body.Str(), "H4sI") {
			r.format = FormatPprof
		}
	}
	if r.typ = valueNamed(r.typeName, TypeOther); r.typeName == "" {
		r.typ = TypeCPU
		if _, ok := r.log.Attributes().Get(keyAllocated); ok {
			r.typ = TypeAllocation
		}
	}
}

// uses reports whether the translator consumes the attribute itself.
func (r *record) uses(key string) bool {
	switch key {
	case KeyEventTimeNanos:
		return r.timeNanos != 0 && r.time == r.timeNanos
	case KeyTraceID, KeySpanID:
		return r.link != dictionary.Link{}
	case keyAllocated:
		return r.format == FormatText && r.typ == TypeAllocation
	}
	if isDescription(key) {
		return r.described
	}
	return describesRecord(key) || r.isOfSample(key)
}

// describesRecord reports whether an attribute of this name describes its record, in Splunk's words or this project's.
func describesRecord(key string) bool {
	switch key {
	case KeySourceType, keyType, keyFormat, keyFrameCount, keyEventPeriod, keyEventPeriodNanos, KeyEventTimeNanos:
		return true
	}
	return isDescription(key)
}

// DescribesRecord reports whether a field of this name describes an event's record, the ids of its span included.
func DescribesRecord(key string) bool {
	return describesRecord(key) || key == KeyTraceID || key == KeySpanID
}

// isOfSample reports whether an attribute of the record belongs to its only sample.
func (r *record) isOfSample(key string) bool {
	return r.format == FormatText && (key == keyEventName || strings.HasPrefix(key, keyThreadPrefix))
}

// recordAttributes interns the attributes of the record that all of its samples share, as attributes of their Profile.
func (t *translator) recordAttributes() dictionary.AttributeSetIndex {
	attributes := t.list[:0]
	for key, value := range t.record.log.Attributes().All() {
		if !t.record.uses(key) {
			attributes = t.appendAttribute(attributes, key, value)
		}
	}
	return t.internSet(attributes)
}

// appendAttribute interns an attribute and appends it, unless the assembler leaves its value out, and counts that.
func (t *translator) appendAttribute(list []int32, key string, value pcommon.Value) []int32 {
	entry := dictionary.Attribute{Key: t.dict.Strings.Intern(dictionary.ValidUTF8(key))}
	var ok bool
	if entry.Value, ok = t.assembler.Value(value); !ok {
		return list
	}
	if key == keyTruncated {
		if truth, err := strconv.ParseBool(value.AsString()); err == nil { // agents write true or True
			entry.Value = dictionary.BoolValue(truth)
		}
	}
	return append(list, int32(t.dict.Attributes.Intern(entry)))
}

// internSet interns a set of attributes. Of several with one key, the first is used. list is scratch, which internSet
// changes.
func (t *translator) internSet(list []int32) dictionary.AttributeSetIndex {
	key := func(i int32) dictionary.StringIndex { return t.dict.Attributes.At(dictionary.AttributeIndex(i)).Key }
	slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(key(a), key(b)) })
	all := len(list)
	list = slices.CompactFunc(list, func(a, b int32) bool { return key(a) == key(b) })
	t.result.Attributes[compact.RepairAttributeKey] += all - len(list)
	if len(list) > 0 && list[0] == 0 { // neither key nor value
		list = list[1:]
	}
	t.list = list
	return t.dict.AttributeSets.Intern(list)
}

// number reads an attribute that is a number, whether it is sent as a number or as a string. It returns 0 for any
// other.
func number(value pcommon.Value) (int64, bool) {
	switch value.Type() {
	case pcommon.ValueTypeInt:
		return value.Int(), true
	case pcommon.ValueTypeDouble, pcommon.ValueTypeStr:
		return parseNumber(value.AsString())
	default: // an array or map can be large, and is no number as text either
		return 0, false
	}
}

func parseNumber(s string) (int64, bool) {
	const longest = 64 // numbers are shorter; a pprof can refer to a long string from every sample
	if len(s) > longest {
		return 0, false
	}
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<53 {
		return int64(f), true
	}
	return 0, false
}

const (
	millisecond   = 1_000_000
	maxTimeMillis = math.MaxInt64 / millisecond
	// The years in seconds. As milliseconds they are weeks of 1970.
	year2000, year2100 = 946_684_800, 4_102_444_800
	// maxPeriodMillis is ten years. A period is added to times, which must not overflow.
	maxPeriodMillis = 10 * 365 * 24 * 3600 * 1000
)

// millisToNanos returns a time or period in nanoseconds, or 0 and one more bad time if it is not in [0, most].
func millisToNanos(millis int64, ok bool, most int64, bad *int) int64 {
	if !ok || millis < 0 || millis > most {
		*bad++
		return 0
	}
	return millis * millisecond
}

// exactTime returns nanos if it is in the same millisecond as time, which has whole milliseconds; otherwise it returns
// time.
func exactTime(time, nanos int64) int64 {
	if nanos > 0 && nanos-nanos%millisecond == time {
		return nanos
	}
	return time
}
