// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package splunkprofilingreceiver receives the log records in which Splunk's agents carry profiles, over OTLP/gRPC,
// OTLP/HTTP and HEC, and hands them on as OTLP profiles. Records that have nothing to do with profiling go to the
// receiver's logs pipelines untouched.
//
// Each server turns bytes into plog.Logs and what became of them into its protocol's answer. What lies between is
// internal/splunklog, and internal/splunkdelivery.
package splunkprofilingreceiver
