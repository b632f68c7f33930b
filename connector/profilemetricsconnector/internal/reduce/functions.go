// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package reduce

import (
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/selection"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/frames"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// Hot is a type whose functions are added up.
type Hot struct {
	Type selection.Type
	// All means that a sample counts for each function on its stack, and otherwise for the one that was running.
	All bool
	// VersionKey is an attribute of resources that separates sums, or "".
	VersionKey string
}

// byName has a number for each function of the message by its name. Only those that are touched are not 0.
type byName[N int32 | float64] struct {
	values  []N
	touched []int32
}

// begin prepares for messages of a number of names.
func (b *byName[N]) begin(names int) {
	if len(b.values) != names {
		b.values = frames.Zeroed(b.values, names)
	}
}

// at returns the number of a function, which the caller makes other than 0.
func (b *byName[N]) at(name int32) *N {
	if b.values[name] == 0 {
		b.touched = append(b.touched, name)
	}
	return &b.values[name]
}

func (b *byName[N]) clear() {
	for _, name := range b.touched {
		b.values[name] = 0
	}
	b.touched = b.touched[:0]
}

// hotSums are the sums of the current resource for one of Options.Hot.
type hotSums struct {
	byName[float64]
	total, observations float64
	samples             int
}

// beginHot finds the sums that a profile is for, and reports whether there are any.
func (r *Reducer) beginHot(p *input) bool {
	r.hotNow = r.hotNow[:0]
	for i, h := range r.Hot {
		if h.Type != p.typ {
			continue
		}
		if p.values == kind.Cumulative {
			r.result.Dropped[Cumulative] += p.Samples().Len()
			continue
		}
		r.hot[i].begin(max(r.frames.Names(), 1))
		r.hotNow = append(r.hotNow, i)
	}
	return len(r.hotNow) > 0
}

func (r *Reducer) addHot(stack int32, value int64) {
	for _, i := range r.hotNow {
		names, ok := r.functions(stack, !r.Hot[i].All)
		if !ok {
			continue
		}
		h := &r.hot[i]
		for _, name := range names {
			if value > 0 {
				*h.at(name) += float64(value)
			}
		}
		h.total += float64(value)
		h.samples++
	}
}

// functions returns the names of the functions of a stack, or of its leaf. If it has none, the sample is counted as
// dropped.
func (r *Reducer) functions(stack int32, isLeaf bool) (names []int32, ok bool) {
	var fault frames.Fault
	if isLeaf {
		names = r.leaf[:]
		r.leaf[0], fault = r.frames.Leaf(stack)
	} else {
		names, fault = r.frames.All(stack)
	}
	switch fault {
	case frames.Index:
		r.result.Dropped[Index]++
	case frames.Expansion:
		r.result.Dropped[Expansion]++
	}
	return names, fault == frames.None
}

// endHot adds what the profile as a whole has.
func (r *Reducer) endHot(p *input, sum total) {
	for _, i := range r.hotNow {
		factor := float64(p.unit.factor)
		r.hot[i].observations += p.each.Observations(sum.sum/factor, sum.squares/factor/factor)
	}
}

// endResource moves the sums of the current resource to the result.
func (r *Reducer) endResource() {
	for i := range r.hot {
		h := &r.hot[i]
		if h.total > 0 {
			f := Functions{
				Entry: i, Resource: values(r.resource, r.ResourceKeys), Total: h.total, Observations: h.observations,
				Samples: h.samples,
				Sums:    make([]FunctionSum, 0, len(h.touched)),
			}
			if key := r.Hot[i].VersionKey; key != "" {
				f.Version = values(r.resource, []string{key})[0]
			}
			for _, name := range h.touched {
				f.Sums = append(f.Sums, FunctionSum{kind.CutName(r.frames.Name(name)), h.values[name]})
			}
			r.result.Functions = append(r.result.Functions, f)
		}
		h.clear()
		h.total, h.observations, h.samples = 0, 0, 0
	}
}
