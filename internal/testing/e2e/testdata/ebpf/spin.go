// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command spin is one of the programs that TestEBPF samples: it spends three quarters of its processor time in hotWork and one
// quarter in coldWork, and sleeps in between. The others do the same in their languages. All end by themselves.
package main

import "time"

var sink uint64

//go:noinline
func hotWork(n uint64) { work(n) }

//go:noinline
func coldWork(n uint64) { work(n) }

func work(n uint64) {
	for i := range n {
		sink += i * i
	}
}

func main() {
	const units = 1_000_000
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); {
		began := time.Now()
		hotWork(3 * units)
		coldWork(units)
		// A quarter of a CPU.
		time.Sleep(3 * time.Since(began))
	}
}
