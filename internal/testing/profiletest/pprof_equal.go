// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/resolved"
)

// PprofOption changes how EqualPprof compares.
type PprofOption func(*pprofOptions)

type pprofOptions struct {
	strictZero     bool
	canonicalLinks bool
}

// StrictZero requires samples whose values are all 0 to be present on both sides. Without it they are ignored, as
// profile.Merge does.
func StrictZero() PprofOption { return func(o *pprofOptions) { o.strictZero = true } }

// CanonicalLinks compares the labels trace_id and span_id as hexadecimal numbers, without regard to leading zeros and
// case. A sample must have both, each as one string that is not zero; otherwise they are labels like any other.
func CanonicalLinks() PprofOption { return func(o *pprofOptions) { o.canonicalLinks = true } }

// EqualPprof returns an error if two pprof profiles differ, whatever the ids and the order of their entries. It
// compares the sample types in order, the profile's own fields, and the values of the samples, added up for each
// identity. A sample's identity is its labels, the values of each key in order, and its locations with every field of
// their mappings, lines and functions. That is stricter than profile.Merge, for which mappings are equal even if they
// differ in their addresses or flags, or have different files and the same build id.
//
// Entries that no sample refers to are ignored. A unit "" is no unit, and a function or mapping whose fields are all
// empty is no function or mapping. The error lists the first differences.
func EqualPprof(want, got *profile.Profile, opts ...PprofOption) error {
	c := &pprofComparison{ids: map[string]int{}}
	for _, opt := range opts {
		opt(&c.options)
	}
	c.compareFields(want, got)
	c.compareSamples(want, got)
	return c.differences.err()
}

type pprofComparison struct {
	options pprofOptions
	// ids are those of the texts of locations.
	ids         map[string]int
	differences differences
}

func (c *pprofComparison) compareFields(want, got *profile.Profile) {
	for _, f := range []struct{ name, want, got string }{
		{"sample_type", valueTypesText(want.SampleType), valueTypesText(got.SampleType)},
		{"default_sample_type", resolved.Word(want.DefaultSampleType), resolved.Word(got.DefaultSampleType)},
		{"comments", fmt.Sprintf("%q", want.Comments), fmt.Sprintf("%q", got.Comments)},
		{"doc_url", resolved.Word(want.DocURL), resolved.Word(got.DocURL)},
		{"drop_frames", resolved.Word(want.DropFrames), resolved.Word(got.DropFrames)},
		{"keep_frames", resolved.Word(want.KeepFrames), resolved.Word(got.KeepFrames)},
		{"time_nanos", fmt.Sprint(want.TimeNanos), fmt.Sprint(got.TimeNanos)},
		{"duration_nanos", fmt.Sprint(want.DurationNanos), fmt.Sprint(got.DurationNanos)},
		{"period", fmt.Sprint(want.Period), fmt.Sprint(got.Period)},
		{"period_type", pprofValueTypeText(want.PeriodType), pprofValueTypeText(got.PeriodType)},
	} {
		c.differences.compare(f.name, f.want, f.got)
	}
}

// pprofSamples has the sums of the samples of one identity on both sides, nil if there are none, and one of the samples
// to name it by.
type pprofSamples struct {
	want, got []int64
	sample    *profile.Sample
}

func (c *pprofComparison) compareSamples(want, got *profile.Profile) {
	index := make(map[string]int, len(want.Sample))
	all := make([]pprofSamples, 0, len(want.Sample))
	collect := func(p *profile.Profile, add func(*pprofSamples, []int64)) {
		known := map[*profile.Location]int{}
		for _, s := range p.Sample {
			identity := c.identity(s, known)
			i, seen := index[identity]
			if !seen {
				i = len(all)
				index[identity] = i
				all = append(all, pprofSamples{sample: s})
			}
			add(&all[i], s.Value)
		}
	}
	collect(want, func(s *pprofSamples, values []int64) { s.want = addValues(s.want, values) })
	collect(got, func(s *pprofSamples, values []int64) { s.got = addValues(s.got, values) })
	for i := range all {
		s := &all[i]
		areIgnored := !c.options.strictZero && isZero(s.want) && isZero(s.got)
		if areIgnored || (s.want == nil) == (s.got == nil) && slices.Equal(s.want, s.got) {
			continue
		}
		c.differences.add("sample "+pprofSampleText(s.sample), "is %s, want %s", valuesText(s.got), valuesText(s.want))
	}
}

// identity returns the labels and the ids of the locations of a sample. known are the ids of the profile's locations.
func (c *pprofComparison) identity(s *profile.Sample, known map[*profile.Location]int) string {
	labels := s.Label
	if c.options.canonicalLinks {
		labels = withCanonicalLink(s)
	}
	identity := []byte(pprofLabelsText(s, labels))
	for _, l := range s.Location {
		id, ok := known[l]
		if !ok {
			text := pprofLocationText(l)
			if id, ok = c.ids[text]; !ok {
				id = len(c.ids)
				c.ids[text] = id
			}
			known[l] = id
		}
		identity = strconv.AppendInt(append(identity, ' '), int64(id), 10)
	}
	return string(identity)
}

// withCanonicalLink returns a sample's labels with its link, if it has one, as hex digits in lower case and full width.
func withCanonicalLink(s *profile.Sample) map[string][]string {
	labels := maps.Clone(s.Label)
	for name, digits := range map[string]int{"trace_id": 32, "span_id": 16} {
		if len(s.Label[name]) != 1 || len(s.NumLabel[name]) != 0 {
			return s.Label
		}
		significant := strings.ToLower(strings.TrimLeft(s.Label[name][0], "0"))
		if significant == "" || len(significant) > digits || strings.Trim(significant, "0123456789abcdef") != "" {
			return s.Label
		}
		labels[name] = []string{significant}
	}
	return labels
}

func addValues(sums, values []int64) []int64 {
	if sums == nil {
		sums = []int64{} // present, even without values
	}
	for i, v := range values {
		if i == len(sums) {
			sums = append(sums, 0)
		}
		sums[i] += v
	}
	return sums
}

func isZero(values []int64) bool {
	return !slices.ContainsFunc(values, func(v int64) bool { return v != 0 })
}

func valuesText(values []int64) string {
	if values == nil {
		return "absent"
	}
	return fmt.Sprint(values)
}
