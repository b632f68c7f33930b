// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build flightrecorder

package main

import (
	"io"
	"runtime/trace"
)

// record dumps what a flight recorder keeps, with -tags flightrecorder and Go 1.25 or later.
func record(to io.Writer) {
	r := trace.NewFlightRecorder(trace.FlightRecorderConfig{})
	must(r.Start())
	work()
	_, err := r.WriteTo(to)
	must(err)
	r.Stop()
}
