// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"encoding/hex"
	"slices"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
)

// maxLabelNameBytes is the longest name of a label. Pyroscope refuses the whole profile for a longer one.
const maxLabelNameBytes = 1024

// preparer changes profiles into a form that Pyroscope can count. It must be idempotent: profiles that were not
// accepted come back prepared.
type preparer struct {
	attributeUses
	// maxStrings is the largest number of string attributes of a sample.
	maxStrings int
	strings    map[string]int32  // those that were added
	links      map[int32][]int32 // the attributes for each link
	typeNames  map[int32]int32   // the index of the string to use for each type
	kept       []int32           // scratch
	names      []string          // of the current sample's labels
	dropped    int
}

// attributeUses caches the uses of attributes, by their indices. Only those of samples are asked for: the table also
// has those of functions, mappings and profiles.
type attributeUses struct {
	pd    pprofile.Profiles
	cfg   *LabelsConfig
	uses  []attributeUse   // by attribute
	names map[int32]string // of labels, by the strings of their keys, which very many attributes can share
}

func newAttributeUses(pd pprofile.Profiles, cfg *LabelsConfig) attributeUses {
	return attributeUses{pd: pd, cfg: cfg, uses: make([]attributeUse, pd.Dictionary().AttributeTable().Len()),
		names: map[int32]string{}}
}

// attributeUse describes what becomes of an attribute of samples.
type attributeUse struct {
	isKnown bool
	// isLabel reports that the server makes it a label of series.
	isLabel bool
	// isExcluded reports that the configuration leaves it out, isTooLong that its name is too long for a label, or empty.
	isExcluded, isTooLong bool
	// name is that of its label. isRenamed reports that it is not the attribute's key.
	name      string
	isRenamed bool
	// isCut reports that its value is too long for a label, or not UTF-8.
	isCut bool
	// index is the attribute to use instead: the same one, or one with a shorter value.
	index int32
}

// of returns the use of attribute i, or nil if i is out of range. The use keeps the index i.
func (u *attributeUses) of(i int32) *attributeUse {
	if i < 0 || int(i) >= len(u.uses) {
		return nil
	}
	use := &u.uses[i]
	if use.isKnown {
		return use
	}
	entry := u.pd.Dictionary().AttributeTable().At(int(i))
	key, value := otlp.StringAt(u.pd.Dictionary(), entry.KeyStrindex()), entry.Value()
	*use = attributeUse{isKnown: true, isExcluded: slices.Contains(u.cfg.SampleExclude, key),
		isLabel: isSeriesLabel(u.pd, entry), index: i, name: key}
	use.isTooLong = use.isLabel && (len(key) > maxLabelNameBytes || key == "")
	if use.isLabel && !use.isTooLong && !use.isExcluded {
		name, ok := u.names[entry.KeyStrindex()]
		if !ok {
			name = kind.LabelName(key, u.cfg.Dots == dotsKeep)
			u.names[entry.KeyStrindex()] = name
		}
		use.name, use.isRenamed = name, name != key
	}
	use.isCut = value.Type() == pcommon.ValueTypeStr && !use.isExcluded &&
		(len(value.Str()) > kind.MaxLabelBytes || !utf8.ValidString(value.Str()))
	return use
}

// prepare changes pd, and returns how many attributes of samples were dropped because a sample had too many, and how
// many samples:
//   - Samples below 0 are dropped. Pyroscope would drop the values of all other types of their stacks with them.
//   - Samples lose their timestamps, and have one value: the sum of their values, or the number of their timestamps.
//   - Samples lose the attributes that the configuration excludes, and string attributes whose name is too long for a
//     label. If a sample has more string attributes than its series has room for beside the labels of the resource, it
//     loses the last ones.
//   - String attributes get the names of labels, as those of resources do; of several with one name, a sample keeps the
//     first.
//   - Strings that are too long for a label are cut, and bytes in them that are not UTF-8 are replaced.
//   - A link becomes the attributes span_id and, if configured, trace_id.
//   - In names of types, underscores replace the characters that Pyroscope refuses or uses as separators.
func prepare(pd pprofile.Profiles, cfg *Config) (attributes, samples int) {
	p := preparer{
		attributeUses: newAttributeUses(pd, &cfg.Labels), maxStrings: cfg.maxSampleLabels(),
		strings: map[string]int32{}, links: map[int32][]int32{}, typeNames: map[int32]int32{},
	}
	for profile := range otlp.Profiles(pd) {
		p.valueType(profile.SampleType())
		p.valueType(profile.PeriodType())
		profile.Samples().RemoveIf(func(sample pprofile.Sample) bool {
			p.sample(sample)
			if sumOf(sample) < 0 {
				samples++
				return true
			}
			return false
		})
	}
	return p.dropped, samples
}

// use returns the use of attribute i, or nil if i is out of range. It adds an attribute whose name or value changes to
// the table.
func (p *preparer) use(i int32) *attributeUse {
	use := p.of(i)
	if use == nil || use.index != i || !use.isCut && !use.isRenamed {
		return use
	}
	table := p.pd.Dictionary().AttributeTable()
	use.index = int32(table.Len())
	entry := table.AppendEmpty()
	table.At(int(i)).CopyTo(entry)
	if use.isRenamed {
		entry.SetKeyStrindex(p.index(use.name))
	}
	if use.isCut {
		entry.Value().SetStr(kind.LabelValue(entry.Value().Str()))
	}
	return use
}

// change reports whether a sample cannot keep its attributes as they are.
func (u *attributeUses) change(sample pprofile.Sample) bool {
	for _, a := range sample.AttributeIndices().All() {
		if use := u.of(a); use != nil && (use.isExcluded || use.isTooLong || use.isCut || use.isRenamed) {
			return true
		}
	}
	return false
}

// isSeriesLabel reports whether a server makes an attribute of samples a label of their series.
func isSeriesLabel(pd pprofile.Profiles, attribute pprofile.KeyValueAndUnit) bool {
	if attribute.Value().Type() != pcommon.ValueTypeStr {
		return false
	}
	key := otlp.StringAt(pd.Dictionary(), attribute.KeyStrindex())
	return key != kind.SpanLabel && key != kind.TraceLabel
}

// isPrepared reports whether pd can be sent as it is: prepare and addCPUTime would change nothing.
func isPrepared(pd pprofile.Profiles, cfg *Config) bool {
	attributes := newAttributeUses(pd, &cfg.Labels)
	known := map[int32]bool{} // many profiles can share a long string
	isName := func(i int32) bool {
		is, ok := known[i]
		if !ok {
			is = kind.IsTypeName(otlp.StringAt(pd.Dictionary(), i))
			known[i] = is
		}
		return is
	}
	isKept := func(t pprofile.ValueType) bool { return isName(t.TypeStrindex()) && isName(t.UnitStrindex()) }
	maxStrings := cfg.maxSampleLabels()
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, profile := range sp.Profiles().All() {
				if !isKept(profile.SampleType()) || !isKept(profile.PeriodType()) {
					return false
				}
				for _, sample := range profile.Samples().All() {
					if sumOf(sample) < 0 || sample.TimestampsUnixNano().Len() > 0 || sample.LinkIndex() != 0 ||
						sample.AttributeIndices().Len() > maxStrings || attributes.change(sample) {
						return false
					}
				}
			}
			if len(countsOfCPU(pd, sp.Profiles())) > 0 {
				return false
			}
		}
	}
	return true
}

// sumOf returns the sum of a sample's values.
func sumOf(sample pprofile.Sample) (sum int64) {
	for _, v := range sample.Values().All() {
		sum = otlp.SaturatingAdd(sum, v)
	}
	return sum
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

func (p *preparer) valueType(t pprofile.ValueType) {
	t.SetTypeStrindex(p.typeName(t.TypeStrindex()))
	t.SetUnitStrindex(p.typeName(t.UnitStrindex()))
}

// typeName returns the index of the string to use instead of string i.
func (p *preparer) typeName(i int32) int32 {
	use, ok := p.typeNames[i]
	if !ok {
		use = i
		if s := otlp.StringAt(p.pd.Dictionary(), i); !kind.IsTypeName(s) {
			use = p.index(kind.TypeName(s))
		}
		p.typeNames[i] = use
	}
	return use
}

func (p *preparer) sample(sample pprofile.Sample) {
	if n := sample.TimestampsUnixNano().Len(); n > 0 {
		sum := int64(n)
		if sample.Values().Len() > 0 {
			sum = sumOf(sample)
		}
		sample.Values().FromRaw([]int64{sum})
		sample.TimestampsUnixNano().FromRaw(nil)
	}
	indices := sample.AttributeIndices()
	kept, isChanged := p.kept[:0], false
	p.names = p.names[:0]
	for i := range indices.Len() {
		a := indices.At(i)
		if use := p.use(a); use != nil {
			isLeftOut := use.isExcluded || use.isTooLong
			if use.isLabel && !isLeftOut {
				if isLeftOut = len(p.names) >= p.maxStrings || p.isTaken(use.name, sample.LinkIndex()); !isLeftOut {
					p.names = append(p.names, use.name)
				}
			}
			if isLeftOut {
				if !use.isExcluded {
					p.dropped++
				}
				isChanged = true
				continue
			}
			isChanged = isChanged || use.index != a
			a = use.index
		}
		kept = append(kept, a)
	}
	if link := sample.LinkIndex(); link != 0 {
		kept = append(kept, p.link(link)...)
		isChanged = true
		sample.SetLinkIndex(0)
	}
	p.kept = kept
	if isChanged {
		indices.FromRaw(kept)
	}
}

// isTaken reports whether the current sample has a label of this name already, or a link that becomes it.
func (p *preparer) isTaken(name string, link int32) bool {
	return slices.Contains(p.names, name) || link != 0 && (name == kind.SpanLabel || name == kind.TraceLabel)
}

func (p *preparer) link(link int32) []int32 {
	if attributes, ok := p.links[link]; ok {
		return attributes
	}
	var attributes []int32
	if table := p.pd.Dictionary().LinkTable(); link > 0 && int(link) < table.Len() {
		if id := table.At(int(link)).SpanID(); !id.IsEmpty() {
			attributes = append(attributes, p.addAttribute(kind.SpanLabel, hex.EncodeToString(id[:])))
		}
		if id := table.At(int(link)).TraceID(); p.cfg.TraceID && !id.IsEmpty() {
			attributes = append(attributes, p.addAttribute(kind.TraceLabel, hex.EncodeToString(id[:])))
		}
	}
	p.links[link] = attributes
	return attributes
}

func (p *preparer) addAttribute(key, value string) int32 {
	table := p.pd.Dictionary().AttributeTable()
	entry := table.AppendEmpty()
	entry.SetKeyStrindex(p.index(key))
	entry.Value().SetStr(value)
	return int32(table.Len() - 1)
}

type position struct{ resource, scope, profile int }

// addCPUTime adds a profile of CPU time beside each profile that only counts samples of CPU time (eBPF's, Splunk's):
// count × period. It returns the positions of the added ones.
func addCPUTime(pd pprofile.Profiles) map[position]bool {
	added := map[position]bool{}
	cpu, nanoseconds := int32(0), int32(0)
	for r, rp := range pd.ResourceProfiles().All() {
		for s, sp := range rp.ScopeProfiles().All() {
			for _, i := range countsOfCPU(pd, sp.Profiles()) {
				if cpu == 0 {
					pd.Dictionary().StringTable().Append("cpu", "nanoseconds")
					nanoseconds = int32(pd.Dictionary().StringTable().Len() - 1)
					cpu = nanoseconds - 1
				}
				added[position{r, s, sp.Profiles().Len()}] = true
				profile := sp.Profiles().AppendEmpty()
				sp.Profiles().At(i).CopyTo(profile)
				profile.SampleType().SetTypeStrindex(cpu)
				profile.SampleType().SetUnitStrindex(nanoseconds)
				for _, sample := range profile.Samples().All() {
					for v := range sample.Values().Len() {
						sample.Values().SetAt(v, otlp.SaturatingMultiply(sample.Values().At(v), profile.Period()))
					}
				}
			}
		}
	}
	return added
}

// countsOfCPU returns the profiles of a scope that count samples of CPU time with no profile of the time itself.
func countsOfCPU(pd pprofile.Profiles, profiles pprofile.ProfilesSlice) (counts []int) {
	type interval struct {
		time             pcommon.Timestamp
		duration, period uint64
	}
	intervalOf := func(p pprofile.Profile) interval { return interval{p.Time(), p.DurationNano(), uint64(p.Period())} }
	isType := func(t pprofile.ValueType, typ, unit string) bool {
		return otlp.StringAt(pd.Dictionary(), t.TypeStrindex()) == typ &&
			otlp.StringAt(pd.Dictionary(), t.UnitStrindex()) == unit
	}
	hasTime := map[interval]bool{}
	for _, p := range profiles.All() {
		if isType(p.SampleType(), "cpu", "nanoseconds") {
			hasTime[intervalOf(p)] = true
		}
	}
	for i, p := range profiles.All() {
		if isType(p.SampleType(), "samples", "count") && isType(p.PeriodType(), "cpu", "nanoseconds") &&
			p.Period() > 0 && !hasTime[intervalOf(p)] {
			counts = append(counts, i)
		}
	}
	return counts
}

func removeProfiles(pd pprofile.Profiles, positions map[position]bool) {
	if len(positions) == 0 {
		return
	}
	for r, rp := range pd.ResourceProfiles().All() {
		for s, sp := range rp.ScopeProfiles().All() {
			i := -1
			sp.Profiles().RemoveIf(func(pprofile.Profile) bool {
				i++
				return positions[position{r, s, i}]
			})
		}
	}
}
