// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// The groups of samples: those without a time, whose values are added up, and those with one.
const (
	untimed = iota
	timed
)

type observedSample = dictionary.Sample[dictionary.ObservationList]

// hasValues reports whether a sample without a time has a value of type v.
func (w *worker) hasValues(v int) bool {
	for at := v; at < len(w.samples.Values); at += w.payload.ValuesPerSample() {
		if w.samples.Values[at] != 0 {
			return true
		}
	}
	return false
}

// isIn reports whether an observation with these values is in the profile of type v. An all-zero observation goes to
// the first profile only.
func isIn(values []int64, v int, isFirst bool) bool {
	return values[v] != 0 || len(values) == 1 || isFirst && !slices.ContainsFunc(values, func(v int64) bool {
		return v != 0
	})
}

// observationsOf returns the observations of a sample that are in the profile of type v. They are valid until the next
// call.
func (w *worker) observationsOf(s *observedSample, v int, isFirst bool) []int32 {
	w.set = w.set[:0]
	for o := s.Observed.First; o >= 0; o = w.samples.Observations[o].Next {
		if isIn(w.samples.ValuesOf(o), v, isFirst) {
			w.set = append(w.set, o)
		}
	}
	return w.set
}

// writeSamples writes the samples of a group that have a value of type v.
func (w *worker) writeSamples(dst pprofile.SampleSlice, group int32, v int, isFirst bool) {
	withValues := group == untimed || !w.areOnes(v, isFirst)
	samples := &w.samples
	total := 0
	for i := range samples.Entries {
		if s := &samples.Entries[i]; s.Group == group && len(w.observationsOf(s, v, isFirst)) > 0 {
			total++
		}
	}
	dst.EnsureCapacity(total)
	for i := range samples.Entries {
		s := &samples.Entries[i]
		if s.Group != group {
			continue
		}
		observations := w.observationsOf(s, v, isFirst)
		n := len(observations)
		if n == 0 {
			continue
		}
		entry := dst.AppendEmpty()
		entry.SetStackIndex(int32(s.Stack))
		entry.SetLinkIndex(int32(s.Link))
		w.dict.AttributeSets.CopyTo(s.Attributes, entry.AttributeIndices())
		if withValues {
			entry.Values().EnsureCapacity(n)
		}
		if group == timed {
			entry.TimestampsUnixNano().EnsureCapacity(n)
		}
		for _, o := range observations {
			if withValues {
				entry.Values().Append(samples.ValuesOf(o)[v])
			}
			if group == timed {
				entry.TimestampsUnixNano().Append(samples.Observations[o].Timestamp)
			}
		}
	}
}
