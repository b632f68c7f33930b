// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
)

// maxLabelNameBytes is the longest name of a label. Pyroscope refuses the whole profile for a longer one.
const maxLabelNameBytes = 1024

// view is a message in a form that Pyroscope can count:
//   - Samples below 0 are left out. Pyroscope would drop the values of all other types of their stacks with them.
//   - Samples have no timestamps, and one value: the sum of their values, or the number of their timestamps. Of states
//     at several times it is the mean.
//   - Samples lose the attributes that the configuration excludes, and attributes with text whose name is too long for
//     a label. If a sample has more of these than its series has room for beside the labels of the resource, it loses
//     the last ones.
//   - Attributes with text, which are all but whole numbers, get the names of labels, as those of resources do; of
//     several with one name, a sample keeps the first.
//   - Strings that are too long for a label are cut, and bytes in them that are not UTF-8 are replaced.
//   - Links have a span, and if configured a trace.
//   - In names of types, underscores replace the characters that Pyroscope refuses or uses as separators. Units have
//     one name: nanoseconds for ns.
//   - Profiles that have CPU time in another form have it as cpu/nanoseconds beside them: those that only count samples
//     (eBPF's, Splunk's) as count × period, and async-profiler's itimer/ns as it is.
//
// It caches the uses of attributes and strings by their indices, which very many samples and profiles can share.
type view struct {
	pd  pprofile.Profiles
	cfg *Config
	// maxLabels is the largest number of labels of a sample.
	maxLabels int
	uses      []attributeUse   // by attribute
	names     map[int32]string // of labels, by the strings of their keys
	typeNames map[typeKey]typeName
	// tallies has the samples of each profile. changesSamples reports that one of them cannot be written as it is, with
	// all its attributes, or that those of several profiles must be added up.
	tallies        map[position]tally
	changesSamples bool

	// Scratch: the names of the current sample's labels, and its attributes.
	taken []string
	kept  []int32
}

type typeKey struct {
	strindex int32
	isUnit   bool
}

type typeName struct {
	name      string
	isChanged bool
}

func newView(pd pprofile.Profiles, cfg *Config) *view {
	v := &view{pd: pd, cfg: cfg, maxLabels: cfg.maxSampleLabels(),
		uses: make([]attributeUse, pd.Dictionary().AttributeTable().Len()), names: map[int32]string{},
		typeNames: map[typeKey]typeName{}, tallies: map[position]tally{}}
	type point struct {
		typeStrindex, unitStrindex int32
		time                       pcommon.Timestamp
	}
	for r, rp := range pd.ResourceProfiles().All() {
		for s, sp := range rp.ScopeProfiles().All() {
			seen := map[point]bool{}
			for p, profile := range sp.Profiles().All() {
				v.tallies[position{r, s, p}] = v.tallyOf(profile)
				at := point{profile.SampleType().TypeStrindex(), profile.SampleType().UnitStrindex(), profile.Time()}
				v.changesSamples = v.changesSamples || seen[at]
				seen[at] = true
			}
		}
	}
	return v
}

// encode returns the message as pprofs.
func (v *view) encode() ([]encode.Payload, encode.Stats, error) {
	e := encode.View{TypeName: v.typeName, Label: v.label, Text: kind.LabelValue, WithoutTraces: !v.cfg.Labels.TraceID,
		CPUTimes: v.cpuTimes, States: v.states, SplitProfiles: true, EmptyPeriodType: true}
	if v.changesSamples {
		e.Sample = v.sample
	}
	return e.Encode(v.pd)
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
}

// use returns the use of attribute i, or nil if i is out of range.
func (v *view) use(i int32) *attributeUse {
	if i < 0 || int(i) >= len(v.uses) {
		return nil
	}
	use := &v.uses[i]
	if use.isKnown {
		return use
	}
	d := v.pd.Dictionary()
	entry := d.AttributeTable().At(int(i))
	key, value := otlp.StringAt(d, entry.KeyStrindex()), entry.Value()
	*use = attributeUse{isKnown: true, isExcluded: slices.Contains(v.cfg.Labels.SampleExclude, key), name: key,
		isLabel: encode.HasText(value) && !kind.IsLink(key)}
	use.isTooLong = use.isLabel && (len(key) > maxLabelNameBytes || key == "")
	if use.isLabel && !use.isTooLong && !use.isExcluded {
		name, ok := v.names[entry.KeyStrindex()]
		if !ok {
			name = kind.LabelName(key, v.cfg.Labels.Dots == dotsKeep)
			v.names[entry.KeyStrindex()] = name
		}
		use.name, use.isRenamed = name, name != key
	}
	return use
}

// label returns the name of the label of an attribute, and whether it differs from the attribute's key.
func (v *view) label(i int32) (name string, isChanged bool) {
	use := v.use(i)
	if use == nil || !use.isRenamed {
		return "", false
	}
	return use.name, true
}

// keep appends the attributes that a sample keeps. It returns how many of them become labels of series, and how many
// are dropped though the configuration does not exclude them.
func (v *view) keep(kept []int32, sample pprofile.Sample) (_ []int32, labels, dropped int) {
	indices := sample.AttributeIndices()
	v.taken = v.taken[:0]
	for k := range indices.Len() {
		use := v.use(indices.At(k))
		switch {
		case use == nil || !use.isLabel && !use.isExcluded:
		case use.isExcluded:
			continue
		case use.isTooLong, len(v.taken) >= v.maxLabels, v.isTaken(use.name, sample.LinkIndex()):
			dropped++
			continue
		default:
			v.taken = append(v.taken, use.name)
		}
		kept = append(kept, indices.At(k))
	}
	return kept, len(v.taken), dropped
}

// isTaken reports whether the current sample has a label of this name already, or a link that becomes it.
func (v *view) isTaken(name string, link int32) bool {
	return slices.Contains(v.taken, name) || link != 0 && kind.IsLink(name)
}

func (v *view) sample(attributes []int32, sample pprofile.Sample) encode.ViewedSample {
	value := otlp.Sum(sample)
	if sample.Values().Len() == 0 {
		value = int64(sample.TimestampsUnixNano().Len())
	}
	kept, _, _ := v.keep(attributes, sample)
	return encode.ViewedSample{Attributes: kept, Link: v.link(sample.LinkIndex()), Value: value, IsLeftOut: value < 0}
}

// link returns 0 instead of a link from which no label is made.
func (v *view) link(i int32) int32 {
	table := v.pd.Dictionary().LinkTable()
	if i <= 0 || int(i) >= table.Len() {
		return i
	}
	if l := table.At(int(i)); l.SpanID().IsEmpty() && (l.TraceID().IsEmpty() || !v.cfg.Labels.TraceID) {
		return 0
	}
	return i
}

// typeName returns the name of a type or unit, and whether it differs from string i.
func (v *view) typeName(i int32, isUnit bool) (string, bool) {
	known, ok := v.typeNames[typeKey{i, isUnit}]
	if !ok {
		s := otlp.StringAt(v.pd.Dictionary(), i)
		name := s
		if isUnit {
			name = kind.UnitName(s)
		}
		if name = kind.TypeName(name); name != s {
			known = typeName{name, true}
		}
		v.typeNames[typeKey{i, isUnit}] = known
	}
	return known.name, known.isChanged
}

// cpuTimes returns the profiles of a scope that have CPU time in another form, unless another profile of the same
// interval has it in a better one: cpu/nanoseconds, or else a time.
func (v *view) cpuTimes(profiles pprofile.ProfilesSlice) map[int]encode.CPUTime {
	type interval struct {
		time             pcommon.Timestamp
		duration, period uint64
	}
	const native, time, count = 0, 1, 2
	found, known := map[int]encode.CPUTime{}, map[interval]bool{}
	for form := native; form <= count; form++ {
		var intervals []interval
		for i, p := range profiles.All() {
			in := interval{p.Time(), p.DurationNano(), uint64(p.Period())}
			nanos, isCount := kind.CPUTimeOf(p, v.pd.Dictionary())
			if nanos == 0 || known[in] || isCount != (form == count) || isCount && p.Period() <= 0 ||
				!isCount && v.isNative(p.SampleType()) != (form == native) {
				continue
			}
			intervals = append(intervals, in)
			if form == native {
				continue
			}
			of := encode.CPUTime{Factor: nanos, Period: otlp.SaturatingMultiply(p.Period(),
				kind.NanosPer(otlp.StringAt(v.pd.Dictionary(), p.PeriodType().UnitStrindex())))}
			if isCount {
				of.Factor = of.Period
			}
			found[i] = of
		}
		for _, in := range intervals {
			known[in] = true
		}
	}
	return found
}

// isNative reports whether a type is Pyroscope's for CPU time.
func (v *view) isNative(t pprofile.ValueType) bool {
	d := v.pd.Dictionary()
	return otlp.StringAt(d, t.TypeStrindex()) == "cpu" && kind.UnitName(otlp.StringAt(d, t.UnitStrindex())) == "nanoseconds"
}

// states returns at how many times a profile has a state: as many as the sample that has the most. For others it
// returns 1.
func (v *view) states(p pprofile.Profile) (most int64) {
	if kind.ValuesOfProfile(p, v.pd.Dictionary()) != kind.Gauge {
		return 1
	}
	for _, sample := range p.Samples().All() {
		most = max(most, int64(sample.TimestampsUnixNano().Len()))
	}
	return most
}

// tally counts samples of one or more profiles.
type tally struct {
	samples, negative int
	// labels is the largest number of labels of a sample, droppedLabels how many all samples together lose.
	labels, droppedLabels int
}

func (v *view) tallyOf(profile pprofile.Profile) (t tally) {
	for _, sample := range profile.Samples().All() {
		attributes := sample.AttributeIndices().Len()
		if otlp.Sum(sample) < 0 {
			t.negative++
		} else {
			t.samples++
		}
		if attributes > 0 {
			var labels, dropped int
			v.kept, labels, dropped = v.keep(v.kept[:0], sample)
			t.labels, t.droppedLabels = max(t.labels, labels), t.droppedLabels+dropped
		}
		v.changesSamples = v.changesSamples || t.negative > 0 || sample.TimestampsUnixNano().Len() > 0 ||
			sample.LinkIndex() != 0 || attributes > 0 && len(v.kept) < attributes
	}
	return t
}

// tally counts the samples of a pprof.
func (v *view) tally(payload *encode.Payload) (t tally) {
	for _, i := range payload.ProfileIndices {
		of := v.tallies[position{payload.ResourceIndex, payload.ScopeIndex, i}]
		t.samples += of.samples
		t.negative += of.negative
		t.labels = max(t.labels, of.labels)
		t.droppedLabels += of.droppedLabels
	}
	return t
}
