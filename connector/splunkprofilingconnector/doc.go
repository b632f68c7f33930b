// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package splunkprofilingconnector reads the log records in which Splunk's agents carry profiles, from a logs pipeline
// with any receiver. It passes them to profiles pipelines as OTLP profiles, and all other records to a logs pipeline.
package splunkprofilingconnector
