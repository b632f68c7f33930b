// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package splunkprofilingreceiver receives the log records in which Splunk's agents carry profiles, over OTLP/gRPC,
// OTLP/HTTP and HEC, and passes them on as OTLP profiles. Records that have nothing to do with profiling go to the
// receiver's logs pipelines untouched.
//
// Each server decodes a request to plog.Logs, and answers in its protocol. In between, internal/splunk/delivery
// translates the records by internal/splunk/records and delivers them.
package splunkprofilingreceiver
