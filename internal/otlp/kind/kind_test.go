// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestName(t *testing.T) {
	for _, c := range []struct{ stated, sampleType, periodType, want string }{
		{"cpu", "samples", "cpu", ProcessCPU},
		{"heap", "alloc_space", "space", Memory},
		{"block", "contentions", "contentions", Block},
		{"my_profile", "cpu", "cpu", "my_profile"},
		{"godeltaprof_memory", "alloc_space", "space", Memory},
		{"goroutines", "goroutine", "goroutine", Goroutine},
		{"", "samples", "cpu", ProcessCPU},
		{"", "alloc_objects", "space", Memory},
		{"", "inuse_space", "", Memory},
		{"", "objects", "", Memory},
		{"", "live_objects", "", Memory},
		{"", "delay", "contentions", Mutex},
		{"", "goroutine", "goroutine", Goroutine},
		{"", "samples", "wall", Wall},
		{"", "cpu", "wall", Wall},
		{"", "wall", "cpu", ProcessCPU},
		{"", "time", "wallclock", Wall},
		{"", "cpu-time", "", ProcessCPU},
		{"", "CPU", "CPU", ProcessCPU},
		{"", "lock-time", "", Mutex},
		{"", "resident_space", "space", Memory},
		{"", "goroutineleak", "goroutineleak", "goroutineleak"},
		{"", "samples", "", ProcessCPU},
		{"", "events", "", OffCPU},
		{"", "events", "cpu", ProcessCPU},
		{"", "Unreleased malloc size", "", Memory}, // heapprofd's
		{"", "Total allocation count", "", Memory},
		{"", "cache_misses", "", "cache_misses"},
		{"", "", "", Other},
	} {
		assert.Equal(t, c.want, Name(c.stated, c.sampleType, c.periodType), c)
	}
}

func TestDefault(t *testing.T) {
	assert.Equal(t, 1, Default([]string{"samples", "cpu"}))
	assert.Equal(t, 3, Default([]string{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"}))
	assert.Equal(t, 0, Default([]string{"x"}))
	assert.Equal(t, 1, Default([]string{"cpu-samples", "cpu-time", "wall-time"}))
	assert.Equal(t, 0, Default(nil))
}
