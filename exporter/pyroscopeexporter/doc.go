// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pyroscopeexporter is the exporter `pyroscope`: profiles in the form that Grafana Pyroscope's own clients
// send.
//
//	view        what is sent of a message: one value instead of timestamps, labels that a server accepts (view.go)
//	sendWhole   sends a message if the server accepts each of its pprofs (push.go)
//	sendPieces  cuts it until the server does (push.go)
//	send        encodes a view as one pprof for each group of sample types (push.go)
//	series      makes the labels of a pprof (push.go, labels.go)
//	post        sends one request for each series (client.go)
//
// push returns the profiles to retry.
package pyroscopeexporter
