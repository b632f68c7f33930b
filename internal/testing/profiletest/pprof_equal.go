// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
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
	c := pprofComparison{options: o, locations: map[string]int{}, samples: map[string]*profile.Sample{}}
	wants, gots := c.parts(want), c.parts(got)
	all := maps.Clone(wants)
	maps.Copy(all, gots)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if wants[name] == gots[name] {
			continue
		}
		where := name
		if s := c.samples[name]; s != nil {
			where = fmt.Sprint("sample ", pprofLabels(s, o))
			for _, l := range s.Location {
				where += " < " + pprofLocation(l)
			}
		}
		c.add(where, wants[name], gots[name])
	}
	return c.err()
}

type pprofComparison struct {
	comparison
	options PprofOption
	// locations numbers the locations of both profiles by their texts, since stacks of texts would be long.
	locations map[string]int
	samples   map[string]*profile.Sample // one for each identity
}

// parts returns what EqualPprof compares by its name: the profile's own fields, and the sums of its samples.
func (c *pprofComparison) parts(p *profile.Profile) map[string]string {
	types := make([]string, len(p.SampleType))
	for i, t := range p.SampleType {
		types[i] = fmt.Sprintf("%q in %q", t.Type, t.Unit)
	}
	var periodType profile.ValueType
	if p.PeriodType != nil {
		periodType = *p.PeriodType
	}
	parts := map[string]string{
		"sample types": strings.Join(types, ", "), "default sample type": p.DefaultSampleType,
		"comments": fmt.Sprintf("%q", p.Comments), "doc url": p.DocURL,
		"drop frames": p.DropFrames, "keep frames": p.KeepFrames,
		"time": fmt.Sprint(p.TimeNanos), "duration": fmt.Sprint(p.DurationNanos),
		"period": fmt.Sprintf("%d of %q in %q", p.Period, periodType.Type, periodType.Unit),
	}
	numbers := map[*profile.Location]int{}
	number := func(l *profile.Location) int {
		if n, ok := numbers[l]; ok {
			return n
		}
		text := pprofLocation(l)
		if _, ok := c.locations[text]; !ok {
			c.locations[text] = len(c.locations)
		}
		numbers[l] = c.locations[text]
		return numbers[l]
	}
	sums := map[string][]int64{}
	for _, s := range p.Sample {
		stack := make([]int, len(s.Location))
		for i, l := range s.Location {
			stack[i] = number(l)
		}
		identity := fmt.Sprint(pprofLabels(s, c.options), stack)
		c.samples[identity] = s
		sum := append(sums[identity], make([]int64, max(0, len(s.Value)-len(sums[identity])))...)
		for i, v := range s.Value {
			sum[i] += v
		}
		sums[identity] = sum
	}
	for identity, values := range sums {
		if c.options&strictZero != 0 || slices.ContainsFunc(values, func(v int64) bool { return v != 0 }) {
			parts[identity] = fmt.Sprint(values)
		}
	}
	return parts
}

// pprofLabels returns the labels of a sample in the order of their keys.
func pprofLabels(s *profile.Sample, o PprofOption) []string {
	var link map[string]string
	if o&canonicalLinks != 0 {
		link = linkOf(s)
	}
	var labels []string
	for key, values := range s.Label {
		if link[key] != "" {
			values = []string{link[key]}
		}
		if len(values) > 0 {
			labels = append(labels, fmt.Sprintf("%q=%q", key, values))
		}
	}
	for key, values := range s.NumLabel {
		if len(values) > 0 {
			units := make([]string, len(values))
			copy(units, s.NumUnit[key])
			labels = append(labels, fmt.Sprintf("%q=%d in %q", key, values, units))
		}
	}
	slices.Sort(labels)
	return labels
}

func pprofLocation(l *profile.Location) string {
	var m profile.Mapping
	if l.Mapping != nil {
		m = *l.Mapping
	}
	var b strings.Builder
	for _, line := range l.Line {
		var f profile.Function
		if line.Function != nil {
			f = *line.Function
		}
		fmt.Fprintf(&b, "%q (%q) %q:%d:%d from %d, ", f.Name, f.SystemName, f.Filename, line.Line, line.Column, f.StartLine)
	}
	fmt.Fprintf(&b, "%#x, folded %t, in %q (%q) %#x-%#x at %#x", l.Address, l.IsFolded, m.File, m.BuildID, m.Start,
		m.Limit, m.Offset)
	fmt.Fprintf(&b, ", functions %t, filenames %t, lines %t, inlined %t", m.HasFunctions, m.HasFilenames,
		m.HasLineNumbers, m.HasInlineFrames)
	return b.String()
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
