// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command spin is one of the programs that TestEBPF samples: it spends three quarters of its processor time in hotWork and one
// quarter in coldWork, by the clock of its thread, and sleeps in between. The others do the same in their languages. All end by
// themselves.
package main

import (
	"runtime"
	"syscall"
	"time"
)

var sink uint64

//go:noinline
func hotWork() { work(30 * time.Millisecond) }

//go:noinline
func coldWork() { work(10 * time.Millisecond) }

func work(length time.Duration) {
	for end := cpuTime() + length; cpuTime() < end; {
		for i := range uint64(100_000) {
			sink += i * i
		}
	}
}

// cpuTime is the processor time of this thread.
func cpuTime() time.Duration {
	const thread = 1 // RUSAGE_THREAD
	var usage syscall.Rusage
	_ = syscall.Getrusage(thread, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func main() {
	runtime.LockOSThread()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); {
		began := time.Now()
		hotWork()
		coldWork()
		// A quarter of a CPU.
		time.Sleep(3 * time.Since(began))
	}
}
