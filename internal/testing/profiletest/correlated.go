// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Keys returns the numbers that the fields of an entry of a table are made of. The first entry is number 1.
type Keys func(entry uint64) [4]uint64

// RandomKeys returns numbers without any relation.
func RandomKeys(entry uint64) [4]uint64 {
	random := rand.NewPCG(entry, 1)
	return [4]uint64{random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64()}
}

// CorrelatedKeys returns keys whose numbers follow from each other, as those of ordinary tables do: all count in
// parallel, or two of them do and the others are constant, for each two.
func CorrelatedKeys() map[string]Keys {
	all := map[string]Keys{
		"equal":    func(i uint64) [4]uint64 { return [4]uint64{i, i, i, i} },
		"parallel": func(i uint64) [4]uint64 { return [4]uint64{2 * i, 2*i + 1, 4 * i, 4*i + 1} },
		"opposite": func(i uint64) [4]uint64 { return [4]uint64{i, -i, i, -i} },
		"shifted":  func(i uint64) [4]uint64 { return [4]uint64{1, 1, i, i << 32} },
	}
	for a := range 4 {
		for b := range a {
			all[fmt.Sprint(b, " and ", a)] = func(i uint64) [4]uint64 {
				numbers := [4]uint64{1, 1, 1, 1}
				numbers[a], numbers[b] = i, i
				return numbers
			}
		}
	}
	return all
}

// KeyIndex returns a number as the index of one of n entries, the first of which is 1.
func KeyIndex(number uint64, n int) int { return 1 + int((number-1)%uint64(n)) }

// nonNegative returns a number as a line, which is not negative.
func nonNegative(number uint64) int64 { return int64(number & math.MaxInt64) }

const (
	// correlatedEntries is large enough for what is quadratic to take far more than correlatedFactor times as long.
	correlatedEntries = 12_000
	// Interning correlated keys takes about as long as random ones, but what is made of the keys differs: strings are
	// longer, entries or samples are alike.
	correlatedFactor   = 3
	correlatedConstant = 50 * time.Millisecond
	correlatedAttempts = 4
)

// RequireCorrelatedKeys fails the test if what prepare returns takes far more processor time for correlated keys than
// for random ones. prepare makes an input of n entries in each table.
func RequireCorrelatedKeys(t *testing.T, prepare func(n int, keys Keys) (run func())) {
	t.Helper()
	SkipLarge(t)
	random := measureKeys(prepare, RandomKeys, 0)
	limit := correlatedFactor*random + correlatedConstant
	for name, keys := range CorrelatedKeys() {
		took := measureKeys(prepare, keys, limit)
		t.Logf("%-18s %.2f × %v", name, float64(took)/float64(max(1, random)), random)
		if took > limit {
			t.Errorf("%d keys, %s: %v of processor time; random ones take %v", correlatedEntries, name, took, random)
		}
	}
}

// measureKeys returns the least processor time of a few runs. It stops at one that takes no more than enough.
func measureKeys(prepare func(int, Keys) func(), keys Keys, enough time.Duration) (least time.Duration) {
	run := prepare(correlatedEntries, keys)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // how much garbage is collected meanwhile would depend on chance
	for attempt := range correlatedAttempts {
		runtime.GC()
		before := ProcessCPU()
		run()
		if took := ProcessCPU() - before; attempt == 0 || took < least {
			least = took
		}
		if least <= enough {
			break
		}
	}
	return least
}

// KeyedProfiles returns a message whose tables have n entries each, with fields made of keys. Each of n samples refers
// to one entry of each table, or, if the keys say so, to the same ones.
func KeyedProfiles(n int, keys Keys) pprofile.Profiles {
	pd := New().Resource("service.name", "shop").Scope("scope", "1").
		Profile("cpu", "nanoseconds").Time(1_700_000_000_000_000_000, 1_000_000_000).
		Profile("events", "count").Time(1_700_000_000_000_000_000, 1_000_000_000).Build()
	d := pd.Dictionary()
	profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	firstString := d.StringTable().Len() - 1
	for i := range n {
		d.StringTable().Append(fmt.Sprint("text", i))
	}
	stringAt := func(number uint64) int32 { return int32(firstString + KeyIndex(number, n)) }
	entry := func(number uint64) int32 { return int32(KeyIndex(number, n)) }
	for i := range uint64(n) {
		k := keys(i + 1)
		function := d.FunctionTable().AppendEmpty()
		function.SetNameStrindex(stringAt(k[0]))
		function.SetSystemNameStrindex(stringAt(k[1]))
		function.SetFilenameStrindex(stringAt(k[2]))
		function.SetStartLine(nonNegative(k[3]))
		mapping := d.MappingTable().AppendEmpty()
		mapping.SetMemoryStart(k[0] >> 2)
		mapping.SetMemoryLimit(k[0]>>2 + k[1]>>2 + 1)
		mapping.SetFileOffset(k[2])
		mapping.SetFilenameStrindex(stringAt(k[3]))
		location := d.LocationTable().AppendEmpty()
		location.SetMappingIndex(entry(k[0]))
		location.SetAddress(k[1])
		line := location.Lines().AppendEmpty()
		line.SetFunctionIndex(entry(k[2]))
		line.SetLine(nonNegative(k[3]))
		d.StackTable().AppendEmpty().LocationIndices().Append(entry(k[0]), entry(k[1]))
		link := d.LinkTable().AppendEmpty()
		link.SetTraceID(traceID(k[0], k[1]))
		link.SetSpanID(spanID(k[2]))
		attribute := d.AttributeTable().AppendEmpty()
		attribute.SetKeyStrindex(stringAt(k[0]))
		attribute.Value().SetInt(int64(k[1]))
		attribute.SetUnitStrindex(stringAt(k[2]))
		for p, profile := range profiles.All() {
			sample := profile.Samples().AppendEmpty()
			sample.SetStackIndex(entry(k[0]))
			sample.AttributeIndices().Append(entry(k[1]))
			sample.SetLinkIndex(entry(k[2]))
			sample.Values().Append(1)
			if p > 0 {
				sample.TimestampsUnixNano().Append(uint64(profile.Time()) + k[3]%profile.DurationNano())
			}
		}
	}
	return pd
}

func traceID(high, low uint64) (id pcommon.TraceID) {
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	return id
}

func spanID(number uint64) (id pcommon.SpanID) {
	binary.BigEndian.PutUint64(id[:], number)
	return id
}

// KeyedPprof returns a payload whose tables have n entries each, with fields made of keys. Each of n samples refers to
// one entry of each table, and has a number and a link as labels. If timed, each has a time, too.
func KeyedPprof(n int, keys Keys, value uint64, timed bool) PprofWire {
	const cpu, nanoseconds, number, trace, span, timestamp = 1, 2, 3, 4, 5, 6
	w := PprofWire(nil).Strings("", "cpu", "nanoseconds", "number", "trace_id", "span_id", "end_timestamp_ns").
		ValueType(PprofSampleType, cpu, nanoseconds)
	for i := range n {
		w = w.Strings(fmt.Sprint("text", i))
	}
	stringAt := func(number uint64) int64 { return timestamp + int64(KeyIndex(number, n)) }
	entry := func(number uint64) uint64 { return uint64(KeyIndex(number, n)) }
	ids := stringAt(uint64(n)) + 1 // the strings after these are the ids of traces and spans
	for i := range uint64(n) {
		k := keys(i + 1)
		w = w.Strings(fmt.Sprintf("%016x%016x", k[0], k[1]), fmt.Sprintf("%016x", k[2])).
			Mapping(PprofMappingFields{
				ID: i + 1, Start: k[0] >> 2, Limit: k[0]>>2 + k[1]>>2 + 1, Offset: k[2], File: stringAt(k[3]),
				BuildID: stringAt(k[0]),
			}).
			Function(PprofFunctionFields{
				ID: i + 1, Name: stringAt(k[0]), SystemName: stringAt(k[1]), File: stringAt(k[2]), StartLine: nonNegative(k[3]),
			}).
			Location(PprofLocationFields{
				ID: i + 1, Mapping: entry(k[0]), Address: k[1],
				Lines: []PprofLine{{Function: entry(k[2]), Line: nonNegative(k[3])}},
			})
		sample := PprofWire(nil).Packed(PprofSampleLocation, entry(k[0]), entry(k[1])).Packed(PprofSampleValue, value).
			Label(PprofLabel{Key: number, Num: int64(k[2])}).
			Label(PprofLabel{Key: stringAt(k[1]), Str: stringAt(k[2])}).
			Label(PprofLabel{Key: trace, Str: ids + 2*int64(i)}).Label(PprofLabel{Key: span, Str: ids + 2*int64(i) + 1})
		if timed {
			sample = sample.Label(PprofLabel{Key: timestamp, Num: 1_700_000_000_000_000_000 + int64(k[3]%1_000_000_000)})
		}
		w = w.Message(PprofSample, sample)
	}
	return w
}
