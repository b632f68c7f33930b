// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package reduce

import (
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/selection"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/frames"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/shares"
)

// Hot is a type whose functions are added up.
type Hot struct {
	Type selection.Type
	// All means that a sample counts for each function on its stack, and otherwise for the one that was running.
	All bool
	// VersionKey is an attribute of resources that separates sums, or "".
	VersionKey string
}

type weight = shares.Weighting

func weighting(sampleType, unit string, period int64, periodUnit string) weight {
	return shares.WeightingOf(sampleType, unit, period, periodUnit)
}

// hotSums are the sums of the current resource.
type hotSums struct {
	entries []hotEntry
	names   int
	// active are the entries that the current profile is for.
	active []int
}

type hotEntry struct {
	// values[name] is the sum of a function, touched has the names whose sum is not 0.
	values  []float64
	touched []int32
	// total and observations are those of the profiles that have ended, running the total of the current one.
	total, observations float64
	running             float64
	samples             int
}

func (h *hotSums) begin(entries, names int) {
	if len(h.entries) != entries {
		h.entries = make([]hotEntry, entries)
	}
	h.names = max(names, 1)
	for i := range h.entries {
		e := &h.entries[i]
		*e = hotEntry{values: e.values[:0], touched: e.touched[:0]}
	}
}

// beginHot finds the entries that a profile is for, and reports whether there are any.
func (r *Reducer) beginHot(p *input) bool {
	r.hot.active = r.hot.active[:0]
	for i, h := range r.Hot {
		if h.Type != p.typ {
			continue
		}
		if p.values == kind.Cumulative {
			r.result.Dropped[Cumulative] += p.Samples().Len()
			continue
		}
		e := &r.hot.entries[i]
		if len(e.values) != r.hot.names {
			e.values = frames.Zeroed(e.values, r.hot.names)
		}
		r.hot.active = append(r.hot.active, i)
	}
	return len(r.hot.active) > 0
}

func (r *Reducer) addHot(stack int32, value int64) {
	for _, i := range r.hot.active {
		e := &r.hot.entries[i]
		if !r.Hot[i].All {
			name, fault := r.frames.Leaf(stack)
			if fault != frames.None {
				r.result.Dropped[Index]++
				continue
			}
			e.add(name, float64(value))
		} else {
			names, fault := r.frames.All(stack)
			if fault != frames.None {
				r.result.Dropped[reasonOf(fault)]++
				continue
			}
			for _, name := range names {
				e.add(name, float64(value))
			}
		}
		e.running += float64(value)
		e.samples++
	}
}

func (e *hotEntry) add(name int32, value float64) {
	if e.values[name] == 0 && value > 0 {
		e.touched = append(e.touched, name)
	}
	e.values[name] += value
}

// endHot adds what the profile as a whole has.
func (r *Reducer) endHot(p *input, sum total) {
	for _, i := range r.hot.active {
		e := &r.hot.entries[i]
		e.total += e.running
		e.running = 0
		factor := float64(p.unit.factor)
		e.observations += p.each.Observations(sum.sum/factor, sum.squares/factor/factor)
	}
}

// endResource moves the sums of the current resource to the result.
func (r *Reducer) endResource() {
	for i := range r.hot.entries {
		e := &r.hot.entries[i]
		if e.total > 0 {
			f := Functions{
				Entry: i, Resource: values(r.resource, r.ResourceKeys), Total: e.total, Observations: e.observations, Samples: e.samples,
				Sums: make([]FunctionSum, 0, len(e.touched)),
			}
			if key := r.Hot[i].VersionKey; key != "" {
				f.Version = values(r.resource, []string{key})[0]
			}
			for _, name := range e.touched {
				f.Sums = append(f.Sums, FunctionSum{kind.CutName(r.frames.Name(name)), e.values[name]})
			}
			r.result.Functions = append(r.result.Functions, f)
		}
		for _, name := range e.touched {
			e.values[name] = 0
		}
		e.touched, e.total, e.observations, e.running, e.samples = e.touched[:0], 0, 0, 0, 0
	}
}
