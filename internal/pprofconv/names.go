// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

// The attributes that carry what pprof says and OTLP has no field for (semantic conventions,
// registry/attributes/pprof and /process; pprof.mapping.start and .limit are this project's own).
const (
	attrComment    = "pprof.profile.comment"
	attrDropFrames = "pprof.profile.drop_frames"
	attrKeepFrames = "pprof.profile.keep_frames"
	attrDocURL     = "pprof.profile.doc_url"

	attrSampleTypeOrder   = "pprof.scope.sample_type_order"
	attrDefaultSampleType = "pprof.scope.default_sample_type"

	attrBuildIDGNU      = "process.executable.build_id.gnu"
	attrBuildIDGo       = "process.executable.build_id.go"
	attrMappingStart    = "pprof.mapping.start"
	attrMappingLimit    = "pprof.mapping.limit"
	attrHasFunctions    = "pprof.mapping.has_functions"
	attrHasFilenames    = "pprof.mapping.has_filenames"
	attrHasLineNumbers  = "pprof.mapping.has_line_numbers"
	attrHasInlineFrames = "pprof.mapping.has_inline_frames"

	attrIsFolded = "pprof.location.is_folded"
)

// The labels that stand for a Link.
const (
	labelTraceID = "trace_id"
	labelSpanID  = "span_id"
)
