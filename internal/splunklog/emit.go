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
	// The dictionary's strings are cut from bodies, which are many times larger.
	t.dict.DetachStrings()
	t.dict.CopyTo(t.out.Dictionary())
}

func (t *translator) writeProfile(g *group) {
	p := g.profile
	p.SetProfileID(g.id.profileID())
	t.dict.AttributeSets.CopyTo(g.attributes, p.AttributeIndices())
	if g.typ == TypeAllocation {
		t.writeValueType("allocated_space", "bytes", p.SampleType())
	} else {
		t.writeValueType("samples", "count", p.SampleType())
	}
	if g.period != 0 {
		t.writeValueType("cpu", "nanoseconds", p.PeriodType())
		p.SetPeriod(g.period)
	}
	if !g.timed {
		return
	}
	// Every time lies before time + duration (profiles.proto, Sample.timestamps_unix_nano).
	p.SetTime(pcommon.Timestamp(g.first))
	p.SetDurationNano(uint64(g.last-g.first) + uint64(max(g.period, 1)))
}

func (t *translator) writeValueType(typ, unit string, dst pprofile.ValueType) {
	dst.SetTypeStrindex(int32(t.dict.Strings.Intern(typ)))
	dst.SetUnitStrindex(int32(t.dict.Strings.Intern(unit)))
}
