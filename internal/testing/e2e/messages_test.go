// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"iter"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// located is a profile with what it belongs to in its message.
type located struct {
	pprofile.Profile
	dictionary pprofile.ProfilesDictionary
	resource   pcommon.Map
	scope      pcommon.InstrumentationScope
}

// profilesIn iterates over the profiles of messages.
func profilesIn(messages ...pprofile.Profiles) iter.Seq[located] {
	return func(yield func(located) bool) {
		for _, pd := range messages {
			for _, rp := range pd.ResourceProfiles().All() {
				for _, sp := range rp.ScopeProfiles().All() {
					for _, p := range sp.Profiles().All() {
						if !yield(located{p, pd.Dictionary(), rp.Resource().Attributes(), sp.Scope()}) {
							return
						}
					}
				}
			}
		}
	}
}

// service returns the resource's service.name.
func (p located) service() string {
	name, _ := p.resource.Get("service.name")
	return name.AsString()
}

// name returns which profile of a program it is: process_cpu, memory and so on.
func (p located) name() string {
	name, _ := p.scope.Attributes().Get("pprof.scope.profile_name")
	return name.AsString()
}

func (p located) text(i int32) string { return p.dictionary.StringTable().At(int(i)) }

func (p located) sampleType() string { return p.text(p.SampleType().TypeStrindex()) }

// frames iterates over the frames of a sample, from the leaf on: the type (profile.frame.type) and the function of
// each. A location without a function is a frame without a name.
func (p located) frames(sample pprofile.Sample) iter.Seq2[string, string] {
	return func(yield func(frameType, function string) bool) {
		for _, index := range p.dictionary.StackTable().At(int(sample.StackIndex())).LocationIndices().All() {
			location := p.dictionary.LocationTable().At(int(index))
			frameType := ""
			for _, a := range location.AttributeIndices().All() {
				if attribute := p.dictionary.AttributeTable().At(int(a)); p.text(attribute.KeyStrindex()) == "profile.frame.type" {
					frameType = attribute.Value().Str()
				}
			}
			if location.Lines().Len() == 0 && !yield(frameType, "") {
				return
			}
			for _, line := range location.Lines().All() {
				if !yield(frameType, p.text(p.dictionary.FunctionTable().At(int(line.FunctionIndex())).NameStrindex())) {
					return
				}
			}
		}
	}
}

// functions returns the functions of a sample, from the leaf on.
func (p located) functions(sample pprofile.Sample) (names []string) {
	for _, name := range p.frames(sample) {
		names = append(names, name)
	}
	return names
}

// functionNames returns the names of all functions of a dictionary.
func functionNames(d pprofile.ProfilesDictionary) (names []string) {
	for _, function := range d.FunctionTable().All() {
		names = append(names, d.StringTable().At(int(function.NameStrindex())))
	}
	return names
}

// sampleTypes returns the names of the profiles' sample types.
func sampleTypes(profiles iter.Seq[located]) map[string]bool {
	types := map[string]bool{}
	for p := range profiles {
		types[p.sampleType()] = true
	}
	return types
}

// samplesByService counts samples by the service that they belong to.
func samplesByService(profiles iter.Seq[located]) map[string]int {
	samples := map[string]int{}
	for p := range profiles {
		samples[p.service()] += p.Samples().Len()
	}
	return samples
}

// valueType is a sample type by its names.
type valueType struct{ name, unit string }

// sumsOfPprof adds up the values of each sample type.
func sumsOfPprof(t *testing.T, payload []byte) map[valueType]int64 {
	t.Helper()
	p := profiletest.ParsePprof(t, payload)
	sums := map[valueType]int64{}
	for i, of := range p.SampleType {
		key := valueType{of.Type, of.Unit}
		sums[key] += 0 // a type without samples counts, too
		for _, sample := range p.Sample {
			sums[key] += sample.Value[i]
		}
	}
	return sums
}

// sumsOfOTLP adds up the values of each sample type. In a sample without values each timestamp counts as one.
func sumsOfOTLP(profiles iter.Seq[located]) map[valueType]int64 {
	sums := map[valueType]int64{}
	for p := range profiles {
		key := valueType{p.sampleType(), p.text(p.SampleType().UnitStrindex())}
		sums[key] += 0 // a type without samples counts, too
		for _, sample := range p.Samples().All() {
			for _, value := range sample.Values().All() {
				sums[key] += value
			}
			if sample.Values().Len() == 0 {
				sums[key] += int64(sample.TimestampsUnixNano().Len())
			}
		}
	}
	return sums
}
