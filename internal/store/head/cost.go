// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
)

// This file estimates what a message takes, before it is added.

// lineBytes is the memory of a line of a location.
const lineBytes = 24

// MessageBytes estimates the memory of a message in the store.
func MessageBytes(pd pprofile.Profiles) int {
	d := pd.Dictionary()
	entries := d.FunctionTable().Len() + d.LocationTable().Len() + d.MappingTable().Len() + d.AttributeTable().Len() +
		d.LinkTable().Len()
	n := 64*entries + compact.LongStringBytes(pd)
	for _, s := range d.StringTable().All() {
		n += 32 + len(s)
	}
	for _, l := range d.LocationTable().All() {
		n += lineBytes * l.Lines().Len()
	}
	for _, stack := range d.StackTable().All() {
		n += 16 + 4*stack.LocationIndices().Len()
	}
	var series seriesCounter
	largest := 0
	for _, rp := range pd.ResourceProfiles().All() {
		n += attributeBytes * (1 + rp.Resource().Attributes().Len())
		for _, sp := range rp.ScopeProfiles().All() {
			n += SeriesBytes*series.count(sp.Profiles()) + attributeBytes*sp.Scope().Attributes().Len()
			for _, p := range sp.Profiles().All() {
				rows := rowsOf(p)
				n += ChunkBytes + rowBytesKept*rows
				largest = max(largest, rows)
			}
		}
	}
	return max(n, rowBytesAdded*largest)
}

// rowsOf returns the number of values and timestamps of a profile.
func rowsOf(p pprofile.Profile) (rows int) {
	for _, sample := range p.Samples().All() {
		rows += max(1, sample.TimestampsUnixNano().Len(), sample.Values().Len())
	}
	return rows
}

const (
	// attributeBytes is the memory of an attribute with its key and a value that is not long.
	attributeBytes = 128
	// rowBytesKept is about the memory of a row, rowBytesAdded that while its profile is added.
	rowBytesKept  = 8
	rowBytesAdded = 16
)

// seriesCounter counts the series that profiles of a scope have at most. It knows the message alone.
type seriesCounter struct{ seen map[seriesHint]struct{} }

type seriesHint struct {
	typ, unit, periodType int32
	attributes            uint64
}

func (s *seriesCounter) count(profiles pprofile.ProfilesSlice) int {
	if profiles.Len() <= 8 { // as most have
		return profiles.Len()
	}
	if s.seen == nil {
		s.seen = map[seriesHint]struct{}{}
	}
	clear(s.seen)
	for _, p := range profiles.All() {
		hint := seriesHint{p.SampleType().TypeStrindex(), p.SampleType().UnitStrindex(), p.PeriodType().TypeStrindex(), 0}
		for _, i := range p.AttributeIndices().All() {
			hint.attributes = (hint.attributes + uint64(uint32(i)) + 1) * 0x9e3779b97f4a7c15
		}
		s.seen[hint] = struct{}{}
	}
	return len(s.seen)
}
