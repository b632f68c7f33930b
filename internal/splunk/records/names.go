// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

// ProfilingName is the scope's name, and the source type, of records that carry profiles.
const ProfilingName = "otel.profiling"

// The attributes of records, and the labels of the samples in their pprof (Splunk GDI specification).
const (
	KeySourceType  = "com.splunk.sourcetype"
	keyFormat      = "profiling.data.format"
	keyType        = "profiling.data.type"
	keyFrameCount  = "profiling.data.total.frame.count"
	keySource      = "profiling.instrumentation.source"
	keyEventName   = "source.event.name"
	keyEventPeriod = "source.event.period"
	// In addition to a period or time in milliseconds, if that is not exact. This project's own.
	keyEventPeriodNanos = "source.event.period.nanos"
	KeyEventTimeNanos   = "source.event.time.unix_nano"
	keyEventTime        = "source.event.time"
	keyAllocated        = "memory.allocated"
	KeyTraceID          = "trace_id"
	KeySpanID           = "span_id"
	keyTruncated        = "thread.stack.truncated"
	keyThreadID         = "thread.id"
	keyThreadName       = "thread.name"
	keyThreadOSID       = "thread.os.id"
	keyThreadState      = "thread.state"
	keyThreadPrefix     = "thread."
)

// Format is how a record's body is written. Its String is what records have, and the value of a metric's attribute.
type Format uint8

// The formats.
const (
	FormatPprof Format = iota
	// FormatText is Splunk's older format, which is only read: one stack a record.
	FormatText
	// FormatOTLP is the serialized ProfilesData, compressed with zstd.
	FormatOTLP
	// FormatOther cannot be read or written.
	FormatOther
	NumFormats = iota
)

func (f Format) String() string {
	return [...]string{"pprof-gzip-base64", "text", "otlp", "other"}[f]
}

// Type is what a record's samples measure. Its String is the value of a metric's attribute.
type Type uint8

// The types.
const (
	TypeCPU Type = iota
	TypeAllocation
	TypeOther
	NumTypes = iota
)

func (t Type) String() string { return [...]string{"cpu", "allocation", "other"}[t] }

// Source is what made an agent record. Its String is the value of a metric's attribute.
type Source uint8

// The sources.
const (
	SourceNone Source = iota
	SourceContinuous
	SourceSnapshot
	SourceThreadDump
	SourceOther
	NumSources = iota
)

func (s Source) String() string {
	return [...]string{"none", "continuous", "snapshot", "threaddump", "other"}[s]
}

// valueNamed returns the value with this name, or the last value, other, if there is none.
func valueNamed[E interface {
	~uint8
	String() string
}](name string, other E) E {
	for value := range other {
		if value.String() == name {
			return value
		}
	}
	return other
}
