// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// kind is what a profile's samples measure: Splunk's type, and the word in its records.
type kind struct {
	typ  Type
	name string
}

// findDoubleCounted reports, by position, which of conformant profiles have a type that Splunk knows as cpu although
// another type of their scope and time counts the same samples: a Go profile has samples and cpu, and Splunk must count
// only one of them: the first one in the unit of Splunk's cpu, which is a number of stacks, otherwise the first.
func findDoubleCounted(pd pprofile.Profiles) []bool {
	found := make([]bool, 0, pd.ProfileCount())
	strs := pd.Dictionary().StringTable()
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			counted := map[interval]valueType{}
			for _, p := range sp.Profiles().All() {
				t, at := sampleTypeOf(strs, p), interval{p.Time(), p.DurationNano()}
				best, isKnown := counted[at]
				isBetter := !isKnown || t.unit == cpuSamples.unit && best.unit != cpuSamples.unit
				if isBetter && isOfSamples(t) {
					counted[at] = t
				}
			}
			for _, p := range sp.Profiles().All() {
				t, at := sampleTypeOf(strs, p), interval{p.Time(), p.DurationNano()}
				found = append(found, isOfSamples(t) && t != counted[at])
			}
		}
	}
	return found
}

type interval struct {
	time     pcommon.Timestamp
	duration uint64
}

// isOfSamples reports whether a profiler can have counted the same samples in another type, too.
func isOfSamples(t valueType) bool {
	return splunkType(t) == TypeCPU && slices.Contains([]string{"samples", "sample", "cpu", "wall"}, t.typ)
}

func (s *sink) kindOf(p pprofile.Profile, doubleCounted bool) kind {
	sampleType := sampleTypeOf(s.dict.StringTable(), p)
	typ := splunkType(sampleType)
	// Splunk adds up all allocations, and the first of totals would count in each of the following ones.
	isTotal := typ == TypeAllocation && profilekind.ValuesOfProfile(p, s.dict) == profilekind.Cumulative
	if typ != TypeOther && !doubleCounted && !isTotal {
		return kind{typ, typ.String()}
	}
	switch sampleType.typ {
	case "":
		return kind{TypeOther, "unknown"}
	case TypeCPU.String(), TypeAllocation.String():
		// Splunk has no words for these.
		return kind{TypeOther, sampleType.typ + "/" + sampleType.unit}
	default:
		return kind{TypeOther, sampleType.typ}
	}
}

func sampleTypeOf(strs pcommon.StringSlice, p pprofile.Profile) valueType {
	return valueType{strs.At(int(p.SampleType().TypeStrindex())), strs.At(int(p.SampleType().UnitStrindex()))}
}

// splunkType classifies a sample type. Splunk knows where a thread was (cpu) and the bytes it allocated (allocation).
func splunkType(t valueType) Type {
	const longest = 64 // many profiles can share a long unit
	if len(t.unit) > longest {
		return TypeOther
	}
	switch t.typ {
	case "cpu", "wall", "samples", "sample", "on_cpu", "off_cpu", "on-cpu", "off-cpu", "offcpu", "oncpu",
		"events": // the eBPF profiler's word for off-CPU time
		return TypeCPU
	case "allocation", "allocated_space", "alloc_space", "alloc_bytes", "allocated_bytes", "alloc_in_new_tlab_bytes",
		"alloc_outside_tlab_bytes":
		if t.unit == "bytes" || t.unit == "By" {
			return TypeAllocation
		}
	}
	return TypeOther
}

// The attributes for what Splunk's format cannot express, so that the profile can be restored. They are this project's
// own: a Splunk backend ignores them. A record is described if it has the first one.
const (
	keySampleType  = "profiling.data.sample.type"
	keySampleUnit  = "profiling.data.sample.unit"
	keySampleShape = "profiling.data.sample.shape"
	keyPeriod      = "profiling.data.period.value"
	keyPeriodType  = "profiling.data.period.type"
	keyPeriodUnit  = "profiling.data.period.unit"
	// keyDuration is left out if the profile's time and duration are those that its samples span.
	keyDuration = "profiling.data.duration.nanos"
)

func isDescription(key string) bool {
	switch key {
	case keySampleType, keySampleUnit, keySampleShape, keyPeriod, keyPeriodType, keyPeriodUnit, keyDuration:
		return true
	}
	return false
}

// The names of the shapes of samples.
const (
	onlyTimes     = "timestamps"
	onlyValues    = "values"
	timesAndValue = "timestamps+values"
)

func shapeName(s compact.Shape) string {
	switch {
	case !s.Values:
		return onlyTimes
	case !s.Timestamps:
		return onlyValues
	default:
		return timesAndValue
	}
}

// shapeNamed returns the shape with a name. An unknown name is that of both timestamps and values.
func shapeNamed(name string) compact.Shape {
	return compact.Shape{Timestamps: name != onlyValues, Values: name != onlyTimes}
}

type valueType struct{ typ, unit string }

// description is what the attributes of a described record express.
type description struct {
	sample, periodType valueType
	period             int64
	shape              compact.Shape
	// spans reports whether time and duration are those that the samples span. If not, the next two fields have them,
	// in nanoseconds.
	spans    bool
	time     int64
	duration uint64
}

// The types of records that are not described.
var (
	cpuSamples     = valueType{"samples", "count"}
	cpuPeriod      = valueType{"cpu", "nanoseconds"}
	allocatedSpace = valueType{"allocated_space", "bytes"}
	// allocatedPeriod is the period type of Go's heap profiles. The period is 1: every value counts as it is. Some
	// backends name a profile by the type of its period, and refuse one without.
	allocatedPeriod = valueType{"space", "bytes"}
)

// anonymous is the name of functions for which an agent has none: backends do not show an empty name.
const anonymous = "(anonymous)"

// unnamed returns the name for functions that have none. In a described record they stay without one.
func (t *translator) unnamed() string {
	if t.record.described {
		return ""
	}
	return anonymous
}

func (d *description) put(to *xpdata.MapBuilder) {
	to.AppendEmpty(keySampleType).SetStr(d.sample.typ)
	for _, field := range []struct{ key, value string }{
		{keySampleUnit, d.sample.unit}, {keyPeriodType, d.periodType.typ}, {keyPeriodUnit, d.periodType.unit},
	} {
		if field.value != "" {
			to.AppendEmpty(field.key).SetStr(field.value)
		}
	}
	to.AppendEmpty(keySampleShape).SetStr(shapeName(d.shape))
	if d.period != 0 {
		to.AppendEmpty(keyPeriod).SetInt(d.period)
	}
	to.AppendEmpty(keyDuration).SetInt(int64(d.duration))
}

// readDescription reads an attribute of the record that may be part of its description.
func (r *record) readDescription(key string, value pcommon.Value) {
	d := &r.description
	switch key {
	case keySampleType:
		r.described = true
		d.sample.typ = dictionary.ValidUTF8(value.AsString())
	case keySampleUnit:
		d.sample.unit = dictionary.ValidUTF8(value.AsString())
	case keySampleShape:
		d.shape = shapeNamed(value.AsString())
	case keyPeriod:
		d.period, _ = number(value)
	case keyPeriodType:
		d.periodType.typ = dictionary.ValidUTF8(value.AsString())
	case keyPeriodUnit:
		d.periodType.unit = dictionary.ValidUTF8(value.AsString())
	case keyDuration:
		if n, ok := number(value); ok {
			d.spans, d.duration = false, uint64(max(n, 0))
		}
	}
}

// describe returns the description of a profile, and whether the record needs it to be read back as it was.
func (s *sink) describe(p pprofile.Profile, typ Type) (d description, needed bool) {
	stringAt := func(i int32) string { return s.dict.StringTable().At(int(i)) }
	first := p.Samples().At(0) // all of a conformant profile have its shape
	d = description{
		sample:     sampleTypeOf(s.dict.StringTable(), p),
		periodType: valueType{stringAt(p.PeriodType().TypeStrindex()), stringAt(p.PeriodType().UnitStrindex())},
		period:     p.Period(),
		shape:      compact.Shape{Timestamps: first.TimestampsUnixNano().Len() > 0, Values: first.Values().Len() > 0},
		time:       int64(min(p.Time(), math.MaxInt64)),
		duration:   min(p.DurationNano(), math.MaxInt64),
	}
	return d, s.hasUnnamed || !d.isPlain(typ) || !spannedBy(p, max(d.period, 1))
}

// isPlain reports whether a record without a description is read as this one, apart from time and duration.
func (d *description) isPlain(typ Type) bool {
	switch typ {
	case TypeCPU:
		return d.sample == cpuSamples && d.shape == shapeNamed(onlyTimes) &&
			(d.period > 0 && d.periodNanos() == d.period && d.periodType == cpuPeriod || d.period == 0 &&
				d.periodType == valueType{})
	case TypeAllocation:
		return d.sample == allocatedSpace && d.shape == shapeNamed(timesAndValue) && d.period == 1 &&
			d.periodType == allocatedPeriod
	default:
		return false
	}
}

// periodNanos returns the period if it is a time that can be added to others, otherwise 0.
func (d *description) periodNanos() int64 {
	if d.periodType.unit != cpuPeriod.unit || d.period < 0 || d.period > maxPeriodMillis*millisecond {
		return 0
	}
	return d.period
}

// spannedBy reports whether a profile's time and duration are those that its samples span, up to a period after the
// last one.
func spannedBy(p pprofile.Profile, period int64) bool {
	first, last := uint64(math.MaxUint64), uint64(0)
	for _, sample := range p.Samples().All() {
		for _, time := range sample.TimestampsUnixNano().All() {
			first, last = min(first, time), max(last, time)
		}
	}
	return first > 0 && first == uint64(p.Time()) && last-first+uint64(period) == p.DurationNano()
}

// addTo makes the description part of a profile's content.
func (d description) addTo(id *otlp.ContentID) {
	for _, name := range []string{d.sample.typ, d.sample.unit, d.periodType.typ, d.periodType.unit, shapeName(d.shape)} {
		id.AddString(name)
	}
	for _, n := range []int64{d.period, d.time, int64(d.duration)} {
		id.AddNumber(uint64(n))
	}
}
