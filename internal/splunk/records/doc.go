// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package records translates between the log records in which Splunk's agents carry profiles and OTLP profiles. It is
// pure: no clock, no network, no logging.
//
// The format is that of Splunk's GDI specification ("Profiling ResourceLogs Message"): a record carries either a
// pprof (gzip, then base64) with many samples, or one call stack as text. A third format carries OTLP profiles whole.
//
// In, by Translate (translate.go), with one dictionary for the request:
//
//	record.go      the fields and attributes of a record
//	pprof.go, text.go with frame.go, otlp.go: its body, by format
//	groups.go      records that share resource, scope, data type, period and attributes become one Profile
//
// Out, by Encoder (encode.go), part by part, cut by compact.Batch until records are small enough:
//
//	sink.go        the records of a part; types.go: which of Splunk's types a profile has, and what describes the others
//	pprof.go, text.go, otlp.go: their bodies
package records
