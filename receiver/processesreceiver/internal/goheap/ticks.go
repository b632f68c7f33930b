// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package goheap

import (
	"bytes"
	"runtime/pprof"
	"strconv"
	"sync"
)

// TicksPerSecond returns the rate of the clock with which Go's runtime measures waits on this machine: the processor's,
// which is the same for all processes. The runtime writes its rate at the beginning of a mutex profile as text. It is
// 1e9 if there is none.
var TicksPerSecond = sync.OnceValue(func() float64 {
	const nanoseconds = 1e9
	var text bytes.Buffer
	if err := pprof.Lookup("mutex").WriteTo(&text, 1); err != nil {
		return nanoseconds
	}
	_, rest, _ := bytes.Cut(text.Bytes(), []byte("cycles/second="))
	digits, _, _ := bytes.Cut(rest, []byte("\n"))
	rate, err := strconv.ParseFloat(string(digits), 64)
	if err != nil || rate <= 0 {
		return nanoseconds
	}
	return rate
})
