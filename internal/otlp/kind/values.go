// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
)

// Values is what the values of a sample type are over time, which decides how profiles are merged. The words are those
// of OTLP's metrics.
type Values int32

const (
	// Delta is what happened in [time, time+duration): values are added up.
	Delta Values = iota
	// Gauge is the state at one time: values are averaged, or the last one is used.
	Gauge
	// Cumulative is what has happened since the process began: values are subtracted from each other.
	Cumulative
)

var valuesNames = [...]string{"delta", "gauge", "cumulative"}

// String returns delta, gauge or cumulative.
func (v Values) String() string { return valuesNames[v] }

// Declared is what a profile tells about its values without stating what they are.
type Declared struct {
	SampleType, Unit, PeriodType string
	DurationNanos                uint64
}

// ValuesOf returns what the values of a profile are that does not state it, by the evidence in this order: the known
// sample types, the unit and the words of an unknown one, the type of the period. In the end, what has no duration is a
// state: an unknown type is never a total, whose differences would make nonsense of a state.
func ValuesOf(d Declared) Values {
	if known, ok := d.known(); ok {
		if known == Cumulative && d.DurationNanos > 0 {
			return Delta
		}
		return known
	}
	words := strings.FieldsFunc(PlainType(d.SampleType), func(r rune) bool { return r == '_' || r == '.' || r == ' ' })
	has := func(list []string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(list, word) })
	}
	switch period, ok := knownTypes[PlainType(d.PeriodType)]; {
	case d.SampleType == "", IsTime(d.Unit), has(flowWords):
		return Delta
	case has(stateWords), ok && period.values == Gauge:
		return Gauge
	case d.DurationNanos > 0, ok && period.values == Delta, has(eventWords):
		return Delta
	}
	return Gauge
}

// known returns what the values of a sample type are if it is one that we know.
func (d *Declared) known() (Values, bool) {
	name := PlainType(d.SampleType)
	if known, ok := knownTypes[name]; ok {
		return known.values, true
	}
	return Gauge, strings.HasPrefix(name, "inuse") || strings.HasPrefix(name, "live_")
}

// nanosPer are the nanoseconds of the units of time.
var nanosPer = map[string]int64{
	"nanoseconds": 1, "nanosecond": 1, "ns": 1,
	"microseconds": 1e3, "microsecond": 1e3, "us": 1e3, "µs": 1e3, "\u03bcs": 1e3,
	"milliseconds": 1e6, "millisecond": 1e6, "ms": 1e6, "seconds": 1e9, "second": 1e9, "s": 1e9,
	"minutes": 60e9, "minute": 60e9, "min": 60e9, "hours": 3600e9, "hour": 3600e9, "h": 3600e9,
}

// unitNames are the words of pprof for units that have several names, in OTLP those of UCUM.
var unitNames = func() map[string]string {
	words := map[int64]string{1: "nanoseconds", 1e3: "microseconds", 1e6: "milliseconds", 1e9: "seconds", 60e9: "minutes",
		3600e9: "hours"}
	names := map[string]string{"By": "bytes", "byte": "bytes", "B": "bytes", "1": "count"}
	for name, nanos := range nanosPer {
		names[name] = words[nanos]
	}
	return names
}()

// UnitName returns the one name of a unit: nanoseconds for ns, bytes for By. Others are returned as they are. Values
// stay as they are, too.
func UnitName(unit string) string { return cmp.Or(unitNames[unit], unit) }

// NanosPer returns the nanoseconds of a unit of time, 0 for another unit.
func NanosPer(unit string) int64 { return nanosPer[unit] }

// IsTime reports whether a unit is one of time.
func IsTime(unit string) bool { return NanosPer(unit) > 0 }

// Temporality is what somebody states about the values of a whole profile: delta, gauge or cumulative, or empty.
type Temporality string

// ParseTemporality reads what a user states.
func ParseTemporality(s string) (Temporality, error) {
	if !slices.Contains(valuesNames[:], s) {
		return "", fmt.Errorf("must be delta, gauge or cumulative, found %q", s)
	}
	return Temporality(s), nil
}

// The words of Temporality.
const (
	StatedDelta      = Temporality("delta")
	StatedGauge      = Temporality("gauge")
	StatedCumulative = Temporality("cumulative")
)

// ValuesOf returns what the values of one of the profile's types are. A state stays one: inuse_space stands beside
// alloc_space in a profile of deltas, and in one of totals.
func (t Temporality) ValuesOf(d Declared) Values {
	known, isKnown := d.known()
	switch {
	case t == "":
		return ValuesOf(d)
	case t == StatedGauge, isKnown && known == Gauge:
		return Gauge
	case t == StatedCumulative:
		return Cumulative
	}
	return Delta
}

// TemporalityAttribute is the attribute of a profile that states what its values are, by the name of Values. Layouts up
// to 1.8 of OTLP had a field for it.
const TemporalityAttribute = "otlp.aggregation_temporality"

// StatedValues returns what the values of a profile are whose TemporalityAttribute is a string, empty if it has none.
func StatedValues(stated string, d Declared) Values {
	if v := slices.Index(valuesNames[:], stated); v >= 0 {
		return Values(v)
	}
	return ValuesOf(d)
}

// Statement adds attributes that state what the values of profiles of a message are.
type Statement struct {
	Dictionary pprofile.ProfilesDictionary
	// indices are those of the attributes in the dictionary, once there are some.
	indices [len(valuesNames)]int32
}

// Put states what the values of a profile are, unless it declares that anyway.
func (s *Statement) Put(p pprofile.Profile, declared Declared, values Values) {
	if values == ValuesOf(declared) {
		return
	}
	if s.indices[values] == 0 {
		s.indices[values] = s.intern(values)
	}
	p.AttributeIndices().Append(s.indices[values])
}

// intern reads the tables once for each kind of values. Tables have less than 2^31 entries, so that adding one works.
func (s *Statement) intern(values Values) int32 {
	strs, attributes := s.Dictionary.StringTable(), s.Dictionary.AttributeTable()
	if strs.Len() == 0 {
		strs.Append("")
	}
	if attributes.Len() == 0 {
		attributes.AppendEmpty()
	}
	statement := pprofile.NewKeyValueAndUnit()
	key, _ := pprofile.SetString(strs, TemporalityAttribute)
	statement.SetKeyStrindex(key)
	statement.Value().SetStr(values.String())
	index, _ := pprofile.SetAttribute(attributes, statement)
	return index
}

// ValuesOfProfile returns what the values of a profile are: what the profile states itself, otherwise ValuesOf what it
// declares. Indices may be out of range.
func ValuesOfProfile(p pprofile.Profile, d pprofile.ProfilesDictionary) Values {
	for key, value := range otlp.Attributes(d, p.AttributeIndices()) {
		if v := slices.Index(valuesNames[:], value.Str()); v >= 0 && key == TemporalityAttribute {
			return Values(v)
		}
	}
	return ValuesOf(DeclaredOf(p, d))
}

// DeclaredOf returns what a profile declares. Samples with times are events, which happened. Indices may be out of
// range.
func DeclaredOf(p pprofile.Profile, d pprofile.ProfilesDictionary) Declared {
	declared := Declared{
		SampleType: stringAt(d, p.SampleType().TypeStrindex()), Unit: stringAt(d, p.SampleType().UnitStrindex()),
		PeriodType: stringAt(d, p.PeriodType().TypeStrindex()), DurationNanos: p.DurationNano(),
	}
	if p.Samples().Len() > 0 && p.Samples().At(0).TimestampsUnixNano().Len() > 0 {
		declared.DurationNanos = max(1, declared.DurationNanos)
	}
	return declared
}

// stringAt returns the beginning of a string of a dictionary, as much as CutName needs, or "" if its index is out of
// range.
func stringAt(d pprofile.ProfilesDictionary, i int32) string {
	s := otlp.StringAt(d, i)
	return s[:min(len(s), MaxNameBytes+utf8.UTFMax)]
}
