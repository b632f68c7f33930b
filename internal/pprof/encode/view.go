// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// View changes what Encode writes of a message, for a server that does not take everything. The message itself stays as
// it is. The functions that are nil change nothing.
type View struct {
	// TypeName returns the name to write for a string of sample and period types, and whether it is another one.
	TypeName func(strindex int32, isUnit bool) (name string, isChanged bool)
	// Label returns the key to write for an attribute of samples, and whether it is another one. Text returns what to
	// write for a string of a label.
	Label func(attribute int32) (key string, isChanged bool)
	Text  func(s string) string
	// Sample reads a sample; it appends the attributes that the sample keeps to those given. Samples that do not differ
	// any more are combined, and lose their timestamps.
	Sample func(attributes []int32, s pprofile.Sample) ViewedSample
	// WithoutTraces leaves out the trace ids of links.
	WithoutTraces bool
	// CPUTimes returns the profiles of a scope that have CPU time in another form than cpu/nanoseconds, such as numbers of
	// samples. Their pprofs get it too, as a further sample type. If they have timestamps, Sample must not be nil.
	CPUTimes func(profiles pprofile.ProfilesSlice) map[int]CPUTime
	// EmptyPeriodType writes the period type of profiles without one, too: Pyroscope fails without it when it drops a
	// sample, and answers 500.
	EmptyPeriodType bool
	// SplitProfiles makes pprofs of their own of profiles with different names, such as process_cpu and off_cpu.
	SplitProfiles bool
	// SplitNames makes a pprof of its own of a sample type that has the name of another and a different unit: pprof's
	// tools lose both. What was one pprof stays one.
	SplitNames bool
	// States returns how many states a profile has, of which the mean is written; 0 or 1 for others.
	States func(p pprofile.Profile) int64
}

// CPUTime is the CPU time of a profile: its values times Factor. Period is its period in nanoseconds.
type CPUTime struct{ Factor, Period int64 }

// ViewedSample is a sample of a view.
type ViewedSample struct {
	Attributes []int32
	// Link is the sample's link, or 0.
	Link int32
	// Value is the sum of its values. IsLeftOut reports that the sample is not written.
	Value     int64
	IsLeftOut bool
}

// joinViewed adds the sample i of a column to the rows.
func (e *encoder) joinViewed(c *column, i int32, s pprofile.Sample) {
	viewed := e.view.Sample(e.kept[:0], s)
	e.kept = viewed.Attributes
	if viewed.IsLeftOut {
		return
	}
	id := dictionary.Identity{
		Stack: dictionary.StackIndex(s.StackIndex()), Link: dictionary.LinkIndex(viewed.Link),
		Attributes: e.setOf(e.kept),
	}
	e.join.add(0, id, i, c.scaled(mean(viewed.Value, c.states)))
}

// typeName returns the payload's index of a string of a sample or period type.
func (e *encoder) typeName(strindex int32, isUnit bool) (uint64, bool) {
	if e.view.TypeName != nil {
		if name, isChanged := e.view.TypeName(strindex, isUnit); isChanged {
			return e.strings.add(name), true
		}
	}
	return e.strings.index(strindex)
}

// mean returns a sum of n values divided by n, rounded.
func mean(sum, n int64) int64 {
	if n < 2 {
		return sum
	}
	return sum/n + (sum%n+n/2)/n
}

// addCPUTime adds a column of CPU time for each column that has it in another form, and writes a sample type for each
// of their types. It returns how many types there are then.
func (e *encoder) addCPUTime(columns []column, types int) (_ []column, all int) {
	all = types
	values := make([]int, types) // of CPU time, by the value that it is made of
	for _, c := range columns {
		time, ok := e.cpuTimes[c.profile]
		if !ok {
			continue
		}
		if values[c.value] == 0 {
			values[c.value] = all
			all++
			e.writeCPUType(scan.ProfileSampleType)
		}
		c.value, c.factor = values[c.value], time.Factor
		columns = append(columns, c)
	}
	return columns, all
}

func (e *encoder) hasCPUTime(profile int) bool { return e.cpuTimes[profile] != CPUTime{} }

// writeCPUType writes cpu/nanoseconds as a sample type or period type.
func (e *encoder) writeCPUType(field int) {
	b, start := openMessage(e.out, field)
	b = appendUint(b, scan.ValueTypeType, e.strings.add("cpu"))
	b = appendUint(b, scan.ValueTypeUnit, e.strings.add("nanoseconds"))
	e.out = closeMessage(b, start)
}
