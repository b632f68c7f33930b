// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pyroscopeexporter is the exporter `pyroscope`: profiles in the form that Grafana Pyroscope's own clients send.
//
//	prepare   profiles as Pyroscope counts them: values instead of timestamps, CPU time beside counts (prepare.go)
//	parts     combined and split under the size that the server accepts (push.go)
//	series    one pprof with its labels for each part of a group of sample types (series.go, labels.go)
//	post      one request for each series; what was not accepted is returned for a retry (push.go, client.go)
package pyroscopeexporter
