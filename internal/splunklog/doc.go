// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package splunklog turns the log records in which Splunk's agents carry profiles into OTLP profiles. It is pure:
// plog in, pprofile out; no clock, no network, no logging.
//
// The format is that of Splunk's GDI specification ("Profiling ResourceLogs Message"): a record carries either a
// pprof (gzip, then base64) with many samples, or one call stack as text. Records of one request that share resource,
// scope, data type, period and attributes become one Profile, and the whole request has one dictionary.
package splunklog
