// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"encoding/hex"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// spanLabel is the sample label that Pyroscope links to spans.
const spanLabel = "span_id"

// preparer changes profiles into what Pyroscope can count. Preparing twice is preparing once: what was not accepted comes
// back prepared.
type preparer struct {
	pd       pprofile.Profiles
	strings  map[string]int32
	excluded map[string]bool
	// isExcluded says of each attribute in the table whether samples lose it.
	isExcluded []bool
	spans      map[int32]int32 // the attribute for each link
	kept       []int32         // scratch
}

// prepare changes pd:
//   - A sample's timestamps go; it has one value, the sum of its values or the number of its timestamps.
//   - The attributes in excluded go from samples.
//   - A link becomes the attribute span_id. The trace's id would become a series for each trace.
//   - Beside a CPU profile that only counts samples (eBPF's, Splunk's) stands one of nanoseconds: count × period.
func prepare(pd pprofile.Profiles, excluded []string) {
	p := preparer{pd: pd, strings: map[string]int32{}, excluded: map[string]bool{}, spans: map[int32]int32{}}
	for _, key := range excluded {
		p.excluded[key] = true
	}
	d := pd.Dictionary()
	for i := range d.StringTable().Len() {
		if s := d.StringTable().At(i); len(s) <= maxKnownText {
			p.strings[s] = int32(i)
		}
	}
	p.isExcluded = make([]bool, d.AttributeTable().Len())
	for i := range p.isExcluded {
		p.isExcluded[i] = p.excluded[p.text(d.AttributeTable().At(i).KeyStrindex())]
	}
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, profile := range sp.Profiles().All() {
				for _, sample := range profile.Samples().All() {
					p.sample(sample)
				}
			}
			p.addCPUTime(sp)
		}
	}
}

// maxKnownText bounds the texts that are looked for: names of attributes and types are short.
const maxKnownText = 64

func (p *preparer) text(i int32) string {
	if t := p.pd.Dictionary().StringTable(); i >= 0 && int(i) < t.Len() {
		return t.At(int(i))
	}
	return ""
}

func (p *preparer) index(s string) int32 {
	i, known := p.strings[s]
	if !known {
		i = int32(p.pd.Dictionary().StringTable().Len())
		p.pd.Dictionary().StringTable().Append(s)
		p.strings[s] = i
	}
	return i
}

func (p *preparer) sample(sample pprofile.Sample) {
	if n := sample.TimestampsUnixNano().Len(); n > 0 {
		sum := int64(n)
		if values := sample.Values(); values.Len() > 0 {
			sum = 0
			for i := range values.Len() {
				sum += values.At(i)
			}
		}
		sample.Values().FromRaw([]int64{sum})
		sample.TimestampsUnixNano().FromRaw(nil)
	}
	indices := sample.AttributeIndices()
	kept := p.kept[:0]
	for i := range indices.Len() {
		if a := indices.At(i); a < 0 || int(a) >= len(p.isExcluded) || !p.isExcluded[a] {
			kept = append(kept, a)
		}
	}
	p.kept = kept
	changed := len(kept) != indices.Len()
	if link := sample.LinkIndex(); link != 0 {
		if a, ok := p.span(link); ok {
			kept, changed = append(kept, a), true
		}
		sample.SetLinkIndex(0)
	}
	if changed {
		indices.FromRaw(kept)
	}
}

// span returns the attribute span_id for a link.
func (p *preparer) span(link int32) (attribute int32, ok bool) {
	if attribute, ok = p.spans[link]; ok {
		return attribute, true
	}
	d := p.pd.Dictionary()
	if link < 0 || int(link) >= d.LinkTable().Len() {
		return 0, false
	}
	id := d.LinkTable().At(int(link)).SpanID()
	if id.IsEmpty() {
		return 0, false
	}
	attribute = int32(d.AttributeTable().Len())
	entry := d.AttributeTable().AppendEmpty()
	entry.SetKeyStrindex(p.index(spanLabel))
	entry.Value().SetStr(hex.EncodeToString(id[:]))
	p.spans[link] = attribute
	return attribute, true
}

// addCPUTime adds a profile of CPU time for each profile of a scope that counts samples of CPU time, unless there is one.
func (p *preparer) addCPUTime(sp pprofile.ScopeProfiles) {
	type interval struct {
		time     pcommon.Timestamp
		duration uint64
	}
	has := map[interval]bool{}
	profiles := sp.Profiles()
	for _, profile := range profiles.All() {
		if p.text(profile.SampleType().UnitStrindex()) == "nanoseconds" {
			has[interval{profile.Time(), profile.DurationNano()}] = true
		}
	}
	for i := range profiles.Len() {
		profile := profiles.At(i)
		if p.text(profile.SampleType().TypeStrindex()) != "samples" || p.text(profile.SampleType().UnitStrindex()) != "count" ||
			p.text(profile.PeriodType().TypeStrindex()) != "cpu" || p.text(profile.PeriodType().UnitStrindex()) != "nanoseconds" ||
			profile.Period() <= 0 || has[interval{profile.Time(), profile.DurationNano()}] {
			continue
		}
		cpu := profiles.AppendEmpty()
		profiles.At(i).CopyTo(cpu)
		cpu.SampleType().SetTypeStrindex(p.index("cpu"))
		cpu.SampleType().SetUnitStrindex(p.index("nanoseconds"))
		for _, sample := range cpu.Samples().All() {
			for v := range sample.Values().Len() {
				sample.Values().SetAt(v, sample.Values().At(v)*cpu.Period())
			}
		}
	}
}
