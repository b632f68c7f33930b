// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pyroscopeexporter is the exporter `pyroscope`: profiles in the form that Grafana Pyroscope's own clients
// send.
//
//	prepare     changes profiles for Pyroscope: one value instead of timestamps, labels that a server accepts (prepare.go)
//	parts       combines profiles, and splits them by their size as OTLP (push.go)
//	send        encodes a part as one pprof for each group of sample types, with CPU time beside counts (push.go, prepare.go)
//	sendPieces  sends a part whose pprofs are larger than the server accepts (pieces.go)
//	series      makes the labels of a pprof (push.go, labels.go)
//	post        sends one request for each series (client.go)
//
// push returns the profiles to retry.
package pyroscopeexporter
