// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !flightrecorder

package main

import (
	"io"
	"runtime/trace"
)

func record(to io.Writer) {
	must(trace.Start(to))
	work()
	trace.Stop()
}
