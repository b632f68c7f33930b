// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package scan reads pprof payloads: their fields, tables and samples as they are on the wire, not yet translated to
// OTLP. Payload.Scan reads the tables and finds the samples (payload.go), SampleReader reads one sample after another
// (sample.go), both with the field reader of wire.go. Limits bound what a payload may cost (limits.go). names.go has
// the field numbers, and the attributes for what OTLP has no fields for.
package scan

// The field numbers of pprof's messages (github.com/google/pprof/proto/profile.proto). All are below 16, so that every
// tag is one byte.
const (
	ProfileSampleType        = 1
	ProfileSample            = 2
	ProfileMapping           = 3
	ProfileLocation          = 4
	ProfileFunction          = 5
	ProfileStringTable       = 6
	ProfileDropFrames        = 7
	ProfileKeepFrames        = 8
	ProfileTimeNanos         = 9
	ProfileDurationNanos     = 10
	ProfilePeriodType        = 11
	ProfilePeriod            = 12
	ProfileComment           = 13
	ProfileDefaultSampleType = 14
	ProfileDocURL            = 15

	ValueTypeType = 1
	ValueTypeUnit = 2

	SampleLocationID = 1
	SampleValue      = 2
	SampleLabel      = 3

	LabelKey     = 1
	LabelStr     = 2
	LabelNum     = 3
	LabelNumUnit = 4

	MappingID              = 1
	MappingStart           = 2
	MappingLimit           = 3
	MappingOffset          = 4
	MappingFilename        = 5
	MappingBuildID         = 6
	MappingHasFunctions    = 7
	MappingHasFilenames    = 8
	MappingHasLineNumbers  = 9
	MappingHasInlineFrames = 10

	LocationID        = 1
	LocationMappingID = 2
	LocationAddress   = 3
	LocationLine      = 4
	LocationIsFolded  = 5

	LineFunctionID = 1
	LineLine       = 2
	LineColumn     = 3

	FunctionID         = 1
	FunctionName       = 2
	FunctionSystemName = 3
	FunctionFilename   = 4
	FunctionStartLine  = 5
)

// The attributes for what pprof has fields for and OTLP does not (semantic conventions,
// registry/attributes/pprof and /process; pprof.mapping.start and .limit are this project's own).
const (
	AttributeComment    = "pprof.profile.comment"
	AttributeDropFrames = "pprof.profile.drop_frames"
	AttributeKeepFrames = "pprof.profile.keep_frames"
	AttributeDocURL     = "pprof.profile.doc_url"

	AttributeBuildIDGNU = "process.executable.build_id.gnu"
	AttributeBuildIDGo  = "process.executable.build_id.go"
	// AttributeBuildIDHTLHash is what profilers write for binaries without a build id. Reading a pprof never yields it.
	AttributeBuildIDHTLHash = "process.executable.build_id.htlhash"
	AttributeMappingStart   = "pprof.mapping.start"
	AttributeMappingLimit   = "pprof.mapping.limit"

	AttributeIsFolded = "pprof.location.is_folded"
)

// StringFields are the profile's fields for attributes that are one string.
var StringFields = [...]struct {
	Attribute string
	Number    int
}{
	{AttributeDropFrames, ProfileDropFrames}, {AttributeKeepFrames, ProfileKeepFrames}, {AttributeDocURL, ProfileDocURL},
}

// MappingFlags are the attributes of a mapping's flags, in the order of pprof's fields.
var MappingFlags = [...]string{
	"pprof.mapping.has_functions", "pprof.mapping.has_filenames",
	"pprof.mapping.has_line_numbers", "pprof.mapping.has_inline_frames",
}

// What the encoder needs to know of a payload with times in labels: the label's key and unit if they are not
// KeyTimestamp and TimestampUnit, and the payload's time and duration if some of its samples lie outside of them.
const (
	AttributeTimestampLabel = "pprof.profile.timestamp_label"
	AttributeTimestampUnit  = "pprof.profile.timestamp_unit"
	AttributeTimeNanos      = "pprof.profile.time_nanos"
	AttributeDurationNanos  = "pprof.profile.duration_nanos"
)

// The label that a sample's timestamp becomes.
const (
	KeyTimestamp  = "timestamps_unix_nano"
	TimestampUnit = "nanoseconds"
)

// The keys of the two labels that a Link becomes.
const (
	KeyTraceID = "trace_id"
	KeySpanID  = "span_id"
)
