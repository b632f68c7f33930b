// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"iter"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Observation is a value, or a point in time, with the names of its type and of its stack.
type Observation struct {
	Resource         pcommon.Resource
	Sample           pprofile.Sample
	SampleType, Unit string
	Functions        []string // leaf first
	Timestamp        uint64   // 0 if the sample has no timestamps
	Value            int64    // 1 for a point in time

	dictionary pprofile.ProfilesDictionary
}

// Stack returns the names of the functions, leaf first.
func (o *Observation) Stack() string { return strings.Join(o.Functions, ";") }

// Attributes returns those of the sample.
func (o *Observation) Attributes() map[string]any {
	all := map[string]any{}
	for _, i := range o.Sample.AttributeIndices().All() {
		a := o.dictionary.AttributeTable().At(int(i))
		all[o.dictionary.StringTable().At(int(a.KeyStrindex()))] = a.Value().AsRaw()
	}
	return all
}

// Observations iterates over all observations.
func Observations(pd pprofile.Profiles) iter.Seq[Observation] {
	return func(yield func(Observation) bool) {
		d := pd.Dictionary()
		text := func(i int32) string { return d.StringTable().At(int(i)) }
		for _, rp := range pd.ResourceProfiles().All() {
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					o := Observation{Resource: rp.Resource(), dictionary: d,
						SampleType: text(p.SampleType().TypeStrindex()), Unit: text(p.SampleType().UnitStrindex())}
					for _, o.Sample = range p.Samples().All() {
						o.Functions = functionsOf(d, o.Sample.StackIndex())
						for i := range max(o.Sample.Values().Len(), o.Sample.TimestampsUnixNano().Len()) {
							if o.Timestamp = 0; o.Sample.TimestampsUnixNano().Len() > 0 {
								o.Timestamp = o.Sample.TimestampsUnixNano().At(i)
							}
							if o.Value = 1; o.Sample.Values().Len() > 0 {
								o.Value = o.Sample.Values().At(i)
							}
							if !yield(o) {
								return
							}
						}
					}
				}
			}
		}
	}
}

func functionsOf(d pprofile.ProfilesDictionary, stack int32) (names []string) {
	for _, l := range d.StackTable().At(int(stack)).LocationIndices().All() {
		for _, line := range d.LocationTable().At(int(l)).Lines().All() {
			names = append(names, d.StringTable().At(int(d.FunctionTable().At(int(line.FunctionIndex())).NameStrindex())))
		}
	}
	return names
}

// Event is an observation with a timestamp, with the names of its service, type and stack.
type Event struct {
	Service, SampleType, Stack string
	Timestamp                  uint64
	// Value is 1 for a point in time.
	Value int64
}

// Events counts all observations that have a timestamp.
func Events(all ...pprofile.Profiles) map[Event]int {
	counts := map[Event]int{}
	for _, pd := range all {
		for o := range Observations(pd) {
			if o.Timestamp > 0 {
				service, _ := o.Resource.Attributes().Get("service.name")
				counts[Event{service.AsString(), o.SampleType, o.Stack(), o.Timestamp, o.Value}]++
			}
		}
	}
	return counts
}
