// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package splunkprofilingconnector reads the log records in which Splunk's agents carry profiles from a logs pipeline,
// whatever receiver received them, and passes them to profiles pipelines as OTLP profiles. To a logs pipeline it passes
// the records that have nothing to do with profiling.
package splunkprofilingconnector
