// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package splunkprofilingconnector takes the log records in which Splunk's agents carry profiles out of a logs
// pipeline, whatever receiver they came by, and hands them to profiles pipelines as OTLP profiles. In front of a
// logs pipeline it hands on the records that have nothing to do with profiling.
package splunkprofilingconnector
