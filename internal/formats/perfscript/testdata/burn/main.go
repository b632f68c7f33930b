// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command burn spends processor time in a method, whose name has parentheses.
package main

type worker struct{ sum uint64 }

//go:noinline
func (w *worker) spin() {
	for range 1500 {
		w.mix()
	}
}

//go:noinline
func (w *worker) mix() {
	for i := range uint64(100_000) {
		w.sum = w.sum*2862933555777941757 + i
	}
}

func main() {
	w := &worker{}
	w.spin()
}
