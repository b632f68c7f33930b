// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// emit writes the groups into their profiles, and the dictionary.
func (t *translator) emit() {
	if len(t.groups) == 1 {
		return
	}
	var times []uint64
	var values []int64
	for g := 1; g < len(t.groups); g++ {
		group := &t.groups[g]
		t.writeProfile(group)
		samples := group.profile.Samples()
		samples.EnsureCapacity(group.count)
		for i := group.firstSample; i != 0; i = t.list[i].next {
			s := &t.list[i]
			entry := samples.AppendEmpty()
			entry.SetStackIndex(int32(s.stack))
			entry.SetLinkIndex(int32(s.link))
			t.dict.AttributeSets.CopyTo(s.set, entry.AttributeIndices())
			times, values = t.times(s, times[:0], values[:0])
			if group.timed {
				entry.TimestampsUnixNano().FromRaw(times)
			}
			if group.valued {
				entry.Values().FromRaw(values)
			}
		}
	}
	// The dictionary's strings are cut from bodies, which can be many times larger than what is needed of them.
	const small = 32 << 10
	if t.opts.MaxProfileBytes-t.bytesLeft > small {
		t.dict.DetachStrings()
	}
	t.dict.CopyTo(t.out.Dictionary())
}

func (t *translator) writeProfile(g *group) {
	p := g.profile
	p.SetProfileID(g.id.ProfileID())
	t.dict.AttributeSets.CopyTo(g.attributes, p.AttributeIndices())
	d := t.describe(g)
	t.writeValueType(d.sample, p.SampleType())
	t.writeValueType(d.periodType, p.PeriodType())
	p.SetPeriod(d.period)
	p.SetTime(pcommon.Timestamp(d.time))
	p.SetDurationNano(d.duration)
}

// describe gives what is to be said of a group's Profile.
func (t *translator) describe(g *group) description {
	d := t.said[g.said]
	if g.said == 0 {
		d = description{sample: cpuSamples, period: g.period, spans: true}
		if g.typ == TypeAllocation {
			d.sample = allocatedSpace
		}
		if g.period != 0 {
			d.periodType = cpuPeriod
		}
	}
	switch {
	case !g.timed:
	case d.spans:
		d.time = g.first
		d.duration = uint64(g.last-g.first) + uint64(max(d.periodNanos(), 1))
	default:
		// Every time lies before time + duration (profiles.proto, Sample.timestamps_unix_nano).
		end := max(uint64(d.time)+d.duration, uint64(g.last)+1)
		d.time = min(d.time, g.first)
		d.duration = end - uint64(d.time)
	}
	return d
}

func (t *translator) writeValueType(from valueType, to pprofile.ValueType) {
	to.SetTypeStrindex(int32(t.dict.Strings.Intern(from.typ)))
	to.SetUnitStrindex(int32(t.dict.Strings.Intern(from.unit)))
}
