// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pyroscopeexporter is the exporter `pyroscope`: profiles in the form that Grafana Pyroscope's own clients send.
//
//	prepare   profiles for Pyroscope: one value instead of timestamps, labels that a server accepts (prepare.go) parts
//	combined and split by their size as OTLP (push.go) send      a part as one pprof for each group of sample types,
//	CPU time beside counts (push.go, prepare.go) pieces    a part whose pprofs are larger than the server accepts
//	(pieces.go) series    a pprof with its labels (push.go, labels.go) post      one request for each series; what was
//	not accepted is returned for a retry (client.go)
package pyroscopeexporter
