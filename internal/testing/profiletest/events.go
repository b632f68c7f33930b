// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

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
		d := pd.Dictionary()
		text := d.StringTable()
		for _, rp := range pd.ResourceProfiles().All() {
			service := ""
			if v, ok := rp.Resource().Attributes().Get("service.name"); ok {
				service = v.AsString()
			}
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					e := Event{Service: service, SampleType: text.At(int(p.SampleType().TypeStrindex()))}
					for _, s := range p.Samples().All() {
						e.Stack = functionsOf(d, s.StackIndex())
						for i, at := range s.TimestampsUnixNano().All() {
							if e.Timestamp, e.Value = at, 1; s.Values().Len() > 0 {
								e.Value = s.Values().At(i)
							}
							counts[e]++
						}
					}
				}
			}
		}
	}
	return counts
}

// functionsOf returns the names of a stack's functions, leaf first.
func functionsOf(d pprofile.ProfilesDictionary, stack int32) string {
	var names []string
	for _, l := range d.StackTable().At(int(stack)).LocationIndices().All() {
		for _, line := range d.LocationTable().At(int(l)).Lines().All() {
			names = append(names, d.StringTable().At(int(d.FunctionTable().At(int(line.FunctionIndex())).NameStrindex())))
		}
	}
	return strings.Join(names, ";")
}
