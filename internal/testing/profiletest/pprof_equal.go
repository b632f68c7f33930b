// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"strings"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// PprofOption changes how EqualPprof compares.
type PprofOption uint8

const (
	strictZero PprofOption = 1 << iota
	canonicalLinks
)

// StrictZero requires samples whose values are all 0 to be present on both sides. Without it they are ignored, as
// profile.Merge does.
func StrictZero() PprofOption { return strictZero }

// CanonicalLinks compares the labels trace_id and span_id as hexadecimal numbers, without regard to leading zeros and
// case. A sample must have both, each as one string that is not zero; otherwise they are labels like any other.
func CanonicalLinks() PprofOption { return canonicalLinks }

// EqualPprof returns an error if two pprof profiles differ, whatever the ids and the order of their entries. It
// compares the sample types in order, the profile's own fields, and the values of the samples, added up for each
// identity. A sample's identity is its labels, the values of each key in order, and its locations with every field of
// their mappings, lines and functions. That is stricter than profile.Merge, for which mappings are equal even if they
// differ in their addresses or flags, or have different files and the same build id.
//
// Entries that no sample refers to are ignored. A unit "" is no unit, and a function or mapping whose fields are all
// empty is no function or mapping. The error lists the first differences.
func EqualPprof(want, got *profile.Profile, opts ...PprofOption) error {
	var o PprofOption
	for _, opt := range opts {
		o |= opt
	}
	if o&strictZero != 0 {
		return Equal(fromPprof(want, o), fromPprof(got, o))
	}
	return Equal(fromPprof(want, o), fromPprof(got, o), ignoreZero)
}

// pprofTables is a dictionary in which nothing is shared that the pprof does not share: Equal compares what entries
// refer to.
type pprofTables struct {
	pprofile.ProfilesDictionary
	functions map[*profile.Function]int32
	mappings  map[*profile.Mapping]int32
	locations map[*profile.Location]int32
}

// fromPprof returns everything that EqualPprof compares as one profile, whose samples have a value of each type.
func fromPprof(p *profile.Profile, o PprofOption) pprofile.Profiles {
	pd := New().Profile("", "").Build()
	d := pprofTables{
		pd.Dictionary(), map[*profile.Function]int32{nil: 0}, map[*profile.Mapping]int32{nil: 0},
		map[*profile.Location]int32{},
	}
	to := ProfileAt(pd, 0)
	types := make([]string, len(p.SampleType))
	for i, t := range p.SampleType {
		types[i] = fmt.Sprintf("%q in %q", t.Type, t.Unit)
	}
	periodType := profile.ValueType{}
	if p.PeriodType != nil {
		periodType = *p.PeriodType
	}
	for _, field := range []Attribute{
		{Key: "sample_type", Value: strings.Join(types, ", ")}, {Key: "default_sample_type", Value: p.DefaultSampleType},
		{Key: "comments", Value: fmt.Sprintf("%q", p.Comments)}, {Key: "doc_url", Value: p.DocURL},
		{Key: "drop_frames", Value: p.DropFrames}, {Key: "keep_frames", Value: p.KeepFrames},
		{Key: "time_nanos", Value: p.TimeNanos}, {Key: "duration_nanos", Value: p.DurationNanos},
		{Key: "period", Value: p.Period}, {Key: "period_type", Value: periodType.Type, Unit: periodType.Unit},
	} {
		to.AttributeIndices().Append(d.attribute(field.Key, field.Value, field.Unit))
	}
	for _, s := range p.Sample {
		sample := to.Samples().AppendEmpty()
		stack := d.StackTable().AppendEmpty()
		for _, l := range s.Location {
			stack.LocationIndices().Append(d.location(l))
		}
		sample.SetStackIndex(int32(d.StackTable().Len() - 1))
		sample.Values().FromRaw(s.Value)
		link := map[string]string{}
		if o&canonicalLinks != 0 {
			link = linkOf(s)
		}
		for key, values := range s.Label {
			if link[key] != "" {
				values = []string{link[key]}
			}
			if len(values) > 0 {
				sample.AttributeIndices().Append(d.attribute(key, fmt.Sprintf("%q", values), ""))
			}
		}
		for key, values := range s.NumLabel {
			if len(values) > 0 {
				units := make([]string, len(values))
				copy(units, s.NumUnit[key])
				sample.AttributeIndices().Append(d.attribute(key, fmt.Sprint(values), fmt.Sprintf("%q", units)))
			}
		}
	}
	return pd
}

// linkOf returns the labels of a sample's link, if it has one, as hex digits in lower case without leading zeros.
func linkOf(s *profile.Sample) map[string]string {
	link := map[string]string{}
	for name, digits := range map[string]int{"trace_id": 32, "span_id": 16} {
		if len(s.Label[name]) != 1 || len(s.NumLabel[name]) != 0 {
			return nil
		}
		link[name] = strings.ToLower(strings.TrimLeft(s.Label[name][0], "0"))
		if link[name] == "" || len(link[name]) > digits || strings.Trim(link[name], "0123456789abcdef") != "" {
			return nil
		}
	}
	return link
}

func (d pprofTables) str(s string) int32 {
	if s == "" {
		return 0
	}
	d.StringTable().Append(s)
	return int32(d.StringTable().Len() - 1)
}

func (d pprofTables) attribute(key string, value any, unit string) int32 {
	a := d.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(d.str(key))
	setRaw(a.Value(), value)
	a.SetUnitStrindex(d.str(unit))
	return int32(d.AttributeTable().Len() - 1)
}

func (d pprofTables) location(l *profile.Location) int32 {
	if index, ok := d.locations[l]; ok {
		return index
	}
	to := d.LocationTable().AppendEmpty()
	d.locations[l] = int32(d.LocationTable().Len() - 1)
	to.SetAddress(l.Address)
	to.SetMappingIndex(d.mapping(l.Mapping))
	to.AttributeIndices().Append(d.attribute("is_folded", l.IsFolded, ""))
	for _, line := range l.Line {
		of := to.Lines().AppendEmpty()
		of.SetFunctionIndex(d.function(line.Function))
		of.SetLine(line.Line)
		of.SetColumn(line.Column)
	}
	return d.locations[l]
}

func (d pprofTables) mapping(m *profile.Mapping) int32 {
	if m != nil && *m == (profile.Mapping{ID: m.ID}) {
		m = nil
	}
	if index, ok := d.mappings[m]; ok {
		return index
	}
	to := d.MappingTable().AppendEmpty()
	d.mappings[m] = int32(d.MappingTable().Len() - 1)
	to.SetMemoryStart(m.Start)
	to.SetMemoryLimit(m.Limit)
	to.SetFileOffset(m.Offset)
	to.SetFilenameStrindex(d.str(m.File))
	to.AttributeIndices().Append(d.attribute("build_id", m.BuildID, ""), d.attribute("has", fmt.Sprintf(
		"functions %t, filenames %t, lines %t, inlined %t", m.HasFunctions, m.HasFilenames, m.HasLineNumbers,
		m.HasInlineFrames), ""))
	return d.mappings[m]
}

func (d pprofTables) function(f *profile.Function) int32 {
	if index, ok := d.functions[f]; ok {
		return index
	}
	to := d.FunctionTable().AppendEmpty()
	d.functions[f] = int32(d.FunctionTable().Len() - 1)
	to.SetNameStrindex(d.str(f.Name))
	to.SetSystemNameStrindex(d.str(f.SystemName))
	to.SetFilenameStrindex(d.str(f.Filename))
	to.SetStartLine(f.StartLine)
	return d.functions[f]
}
