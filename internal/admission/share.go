// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import "sync"

// process is the budget that all receivers of the process share.
var process = struct {
	sync.Mutex
	budget *Budget
	limits map[*int64]struct{}
}{budget: New(0), limits: map[*int64]struct{}{}}

// Process returns the budget that all receivers of the process share. Share sets its size.
func Process() *Budget { return process.budget }

// Share returns the budget of the process and a function that leaves it, which the caller must call when it receives
// no longer. While receivers share the budget it is as large as the largest maxBytes among them: a payload within the
// limits of any of them fits, and several receivers do not add up.
func Share(maxBytes int64) (budget *Budget, leave func()) {
	process.Lock()
	defer process.Unlock()
	limit := &maxBytes
	process.limits[limit] = struct{}{}
	resize()
	return process.budget, func() {
		process.Lock()
		defer process.Unlock()
		delete(process.limits, limit)
		resize()
	}
}

func resize() {
	b := process.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.maxBytes = 0
	for limit := range process.limits {
		b.maxBytes = max(b.maxBytes, *limit)
	}
	b.admitWaiting()
}
