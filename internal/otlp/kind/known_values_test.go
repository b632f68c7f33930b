// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// knownSampleTypes are the known values of Profile.sample_type that the specification proposes, with what this package
// makes of them: open-telemetry/opentelemetry-specification, pull request 5296, opened on 2026-09-03, with the two
// types of the eBPF profiler that its review of 2026-09-04 adds. Each type is a profile without a period type, and with
// a duration.
var knownSampleTypes = []struct {
	sampleType, unit, name string
	values                 Values
}{
	{"cpu", "nanoseconds", ProcessCPU, Delta},
	{"samples", "count", ProcessCPU, Delta},
	{"wall", "nanoseconds", Wall, Delta},
	{"off_cpu", "nanoseconds", OffCPU, Delta},
	{"events", "count", OffCPU, Delta},
	{"inuse_space", "bytes", Memory, Gauge},
	{"inuse_objects", "count", Memory, Gauge},
	{"alloc_space", "bytes", Memory, Delta},
	{"alloc_objects", "count", Memory, Delta},
	{"allocated_space", "bytes", Memory, Delta},
	{"allocated_objects", "count", Memory, Delta},
	{"space", "bytes", Memory, Gauge},
	{"block", "nanoseconds", Block, Delta},
	{"mutex", "nanoseconds", Mutex, Delta},
}

func TestKnownSampleTypes(t *testing.T) {
	for _, known := range knownSampleTypes {
		assert.Equal(t, known.name, Name("", known.sampleType, ""), known.sampleType)
		assert.Equal(t, known.values, ValuesOf(Declared{SampleType: known.sampleType, Unit: known.unit, DurationNanos: 1e9}),
			known.sampleType)
	}
}
