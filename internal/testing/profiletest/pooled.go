// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

const (
	pooledUses = 10_000
	// Each of many inputs has a string of its own, and one input has a string that is long enough for it to be seen in the
	// heap.
	pooledStringBytes     = 1 << 10
	longPooledStringBytes = 8 << 20
	// maxPooledGrowth is what chance may add to the heap, such as a few more buffers for compression.
	maxPooledGrowth = 4 << 20
)

// RequireForgets fails the test if what keeps its memory for the next use keeps anything else: if its result differs
// from the first one during ten thousand uses, if it holds more memory with every use, or if it keeps the string of the
// last one. use passes the string on as part of an input, and returns the result in a form that does not depend on the
// string. buffers is how often the string fits into the buffers that are kept.
func RequireForgets(t *testing.T, buffers int, use func(s string) (result string)) {
	t.Helper()
	filler := strings.Repeat("x", pooledStringBytes)
	first, early := use(filler), 0
	for i := range pooledUses {
		if i == pooledUses/10 {
			early = heapInUse()
		}
		if result := use(fmt.Sprint(i, filler)); result != first {
			t.Fatalf("use %d: got\n%s\nthe first one returned\n%s", i, result, first)
		}
	}
	if grown := heapInUse() - early; grown > maxPooledGrowth {
		t.Errorf("%d bytes more in memory after %d uses", grown, pooledUses)
	}
	use(strings.Repeat("x", longPooledStringBytes))
	if grown := heapInUse() - early; grown > maxPooledGrowth+buffers*longPooledStringBytes {
		t.Errorf("%d bytes more in memory after an input of %d bytes", grown, longPooledStringBytes)
	}
}

// heapInUse collects garbage once: what is in a sync.Pool survives that.
func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
