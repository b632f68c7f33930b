// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"math"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// record is what the fields and attributes of one profiling record say of its samples.
type record struct {
	log    plog.LogRecord
	format Format
	typ    Type
	source Source
	// formatText and typeText are what stands in the record, for error messages.
	formatText, typeText string
	// time is in nanoseconds, 0 where it is not known.
	time int64
	// period is in nanoseconds, 0 if there is none.
	period    int64
	allocated int64
	// periodNanos is what is said in nanoseconds beside the period.
	periodNanos int64
	// timeNanos is what is said of the time in nanoseconds.
	timeNanos int64
	link      profiledict.Link
	linked    bool
	// described says that the record has a description of its profile. value is that of a text.
	described   bool
	description description
	value       int64
}

// isProfiling reports whether a record claims to carry a profile. inherited says that its scope or its resource
// already makes that claim for it.
func isProfiling(inherited bool, log plog.LogRecord) bool {
	return inherited || hasSourceType(log.Attributes())
}

func hasSourceType(attributes pcommon.Map) bool {
	value, ok := attributes.Get(KeySourceType)
	return ok && value.Type() == pcommon.ValueTypeStr && value.Str() == ProfilingName
}

// read reads what all formats have in common.
func (r *record) read(log plog.LogRecord, badTimes *int) {
	*r = record{log: log, description: description{shape: shapeBoth, spans: true}}
	var trace, span string
	for key, value := range log.Attributes().All() {
		switch key {
		case keyFormat:
			r.formatText = value.AsString()
		case keyType:
			r.typeText = value.AsString()
		case keySource:
			r.source = sourceOf(value.AsString())
		case keyEventPeriod:
			r.period = periodOf(value, badTimes)
		case keyEventPeriodNanos:
			r.periodNanos, _ = number(value)
		case keyAllocated:
			if n, ok := number(value); ok {
				r.allocated = n
			}
		case KeyTraceID:
			trace = value.AsString()
		case KeySpanID:
			span = value.AsString()
		case KeyEventTimeNanos:
			r.timeNanos, _ = number(value)
		default:
			if strings.HasPrefix(key, keyDataPrefix) {
				r.readDescription(key, value)
			}
		}
	}
	r.period = exactTime(r.period, r.periodNanos)
	r.setTime(badTimes)
	if traceID, spanID := log.TraceID(), log.SpanID(); !traceID.IsEmpty() && !spanID.IsEmpty() {
		r.link, r.linked = profiledict.Link{TraceID: traceID, SpanID: spanID}, true
	} else {
		r.link, r.linked = profiledict.ParseLink(trace, span)
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

// classify tells format and type. Early agents said neither.
func (r *record) classify() {
	switch r.formatText {
	case formatPprofValue:
		r.format = FormatPprof
	case formatTextValue:
		r.format = FormatText
	case formatOTLPValue:
		r.format = FormatOTLP
	case "":
		r.format = FormatText
		// The base64 of gzip's first three bytes.
		if body := r.log.Body(); body.Type() == pcommon.ValueTypeBytes || strings.HasPrefix(body.Str(), "H4sI") {
			r.format = FormatPprof
		}
	default:
		r.format = FormatOther
	}
	switch r.typeText {
	case "cpu":
		r.typ = TypeCPU
	case "allocation":
		r.typ = TypeAllocation
	case "":
		if _, ok := r.log.Attributes().Get(keyAllocated); ok {
			r.typ = TypeAllocation
		}
	default:
		r.typ = TypeOther
	}
}

// number reads an attribute that is a number, whether it is sent as a number or as text.
func number(value pcommon.Value) (int64, bool) {
	switch value.Type() {
	case pcommon.ValueTypeInt:
		return value.Int(), true
	case pcommon.ValueTypeDouble:
		return wholeNumber(value.Double())
	case pcommon.ValueTypeStr:
		return parseNumber(value.Str())
	default:
		return 0, false
	}
}

func parseNumber(text string) (int64, bool) {
	const longest = 64 // no number needs more; a pprof can refer to a long text from every sample
	if len(text) > longest {
		return 0, false
	}
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, false
	}
	return wholeNumber(f)
}

func wholeNumber(f float64) (int64, bool) {
	if math.Abs(f) < 1<<53 {
		return int64(f), true
	}
	return 0, false
}

const (
	millisecond = 1_000_000
	// maxPeriodMillis is ten years. A period goes into a sum with times, which must not overflow.
	maxPeriodMillis = 10 * 365 * 24 * 3600 * 1000
)

// periodNanos turns a period in milliseconds into nanoseconds; 0 where it cannot be one.
func periodNanos(millis int64, ok bool, bad *int) int64 {
	if !ok || millis < 0 || millis > maxPeriodMillis {
		*bad++
		return 0
	}
	return millis * millisecond
}

// timeNanos turns a time in milliseconds into nanoseconds; 0 where it cannot be one.
func timeNanos(millis int64, ok bool, bad *int) int64 {
	if !ok || millis < 0 || millis > math.MaxInt64/millisecond {
		*bad++
		return 0
	}
	return millis * millisecond
}

func periodOf(value pcommon.Value, bad *int) int64 {
	millis, ok := number(value)
	return periodNanos(millis, ok, bad)
}

// exactTime returns the nanoseconds that stand beside a time or period in milliseconds, where they name the same millisecond.
func exactTime(time, nanos int64) int64 {
	if nanos > 0 && nanos-nanos%millisecond == time {
		return nanos
	}
	return time
}
