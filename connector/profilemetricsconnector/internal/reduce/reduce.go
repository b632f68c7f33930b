// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package reduce

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/selection"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/frames"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/shares"
)

// Options are what a Reducer makes of messages.
type Options struct {
	Set *selection.Set
	// Hot are the types whose functions are added up, for each resource by the values of ResourceKeys.
	Hot          []Hot
	ResourceKeys []string
	// MaxAdditions bounds the series of one message. What is beyond goes to the series of its metric that has no
	// attributes.
	MaxAdditions int
}

// Reducer makes sums of messages. One goroutine uses it.
type Reducer struct {
	Options
	matcher    matcher
	attributes attributes
	frames     frames.Frames
	namer      kind.Namer
	result     Result
	byKey      map[string]int
	// perFunction has, for each metric, the additions of the current profile that only functions distinguish, each with 1
	// added. last is the number of the addition that was returned last.
	perFunction []byName[int32]
	last        int
	// hot is for each of Options.Hot, hotNow has the numbers of those that the current profile is for.
	hot    []hotSums
	hotNow []int
	leaf   [1]int32

	dict pprofile.ProfilesDictionary
	// resource are the attributes of the current resource; matches says for each metric whether it meets the conditions.
	resource pcommon.Map
	matches  []state
	groups   [][]string
	// scope are the profiles of the current scope; types has those that measure a time, once asked for.
	scope      pprofile.ScopeProfiles
	scopeTypes map[string]bool
	order      int
	links      pprofile.LinkSlice
	// serial numbers the samples of a message.
	serial int

	key   []byte
	hash  maphash.Hash
	pairs []pair
	plan  []planned
}

// New returns a Reducer.
func New(options Options) *Reducer {
	r := &Reducer{
		Options: options, perFunction: make([]byName[int32], len(options.Set.Metrics)),
		hot: make([]hotSums, len(options.Hot)),
	}
	r.matcher.set, r.attributes.set = options.Set, options.Set
	return r
}

// Reduce returns what a message adds. The message is only read, and may be invalid. The result is valid until the next
// call.
func (r *Reducer) Reduce(pd pprofile.Profiles) *Result {
	r.begin(pd)
	resolved := compact.ResolveReferences(pd)
	for i, rp := range pd.ResourceProfiles().All() {
		r.resource = resolved.ResourceProfiles().At(i).Resource().Attributes()
		r.matches = frames.Zeroed(r.matches, len(r.Set.Metrics))
		r.groups = frames.Zeroed(r.groups, len(r.Set.Metrics))
		for j, sp := range rp.ScopeProfiles().All() {
			scope := resolved.ResourceProfiles().At(i).ScopeProfiles().At(j).Scope().Attributes()
			r.namer.Begin(scope, sp.Profiles(), r.dict)
			r.scope, r.scopeTypes, r.order = sp, nil, 0
			if v, ok := scope.Get(kind.AttributeSampleTypeOrder); ok && v.Type() == pcommon.ValueTypeSlice {
				r.order = v.Slice().Len()
			}
			stated := kind.Stated(scope)
			for _, p := range sp.Profiles().All() {
				r.profile(p, stated)
			}
		}
		r.endResource()
	}
	return &r.result
}

// Forget drops all that belongs to the last message, its result included.
func (r *Reducer) Forget() {
	r.begin(pprofile.NewProfiles())
	r.namer = kind.Namer{}
	r.resource, r.scope, r.scopeTypes = pcommon.NewMap(), pprofile.NewScopeProfiles(), nil
	clear(r.groups)
}

func (r *Reducer) begin(pd pprofile.Profiles) {
	r.dict, r.links = pd.Dictionary(), pd.Dictionary().LinkTable()
	r.matcher.begin(r.dict)
	r.attributes.begin(r.dict)
	const large = 1 << 12
	if len(r.byKey) > large || cap(r.result.Additions) > large {
		r.byKey, r.result = nil, Result{}
	}
	clear(r.result.Additions)
	clear(r.result.Sources)
	clear(r.result.Functions)
	r.result = Result{
		Additions: r.result.Additions[:0], Sources: r.result.Sources[:0], Functions: r.result.Functions[:0],
		Samples: pd.SampleCount(),
	}
	if r.byKey == nil {
		r.byKey = map[string]int{}
	}
	clear(r.byKey)
	r.serial = 0
	r.frames.Begin(r.dict, r.result.Samples)
}

// stringAt returns a string of the message, or "" if its index is out of range.
func (r *Reducer) stringAt(i int32) string { return kind.CutName(otlp.StringAt(r.dict, i)) }

// unit is what values measure, and by which factor they become nanoseconds or bytes.
type unit struct {
	name   string
	factor int64
}

// units are those that are no time.
var units = map[string]unit{
	"bytes": {"By", 1}, "byte": {"By", 1}, "By": {"By", 1}, "B": {"By", 1},
	"kilobytes": {"By", 1 << 10}, "megabytes": {"By", 1 << 20},
}

func unitOf(name string) unit {
	if nanos := kind.NanosPer(name); nanos > 0 {
		return unit{"s", nanos}
	}
	return units[name]
}

// isMeasure reports whether values of a unit can be converted.
func isMeasure(unit string) bool { return unit == "s" || unit == "By" }

// planned is a metric that the current profile is for.
type planned struct {
	metric   int
	source   int
	addition int
}

func (r *Reducer) profile(p pprofile.Profile, stated string) {
	typ, periodType := r.stringAt(p.SampleType().TypeStrindex()), r.stringAt(p.PeriodType().TypeStrindex())
	name := r.namer.Name(p, stated)
	t := selection.Type{Profile: name, Type: kind.PlainType(typ)}
	unitName := r.stringAt(p.SampleType().UnitStrindex())
	profile := input{
		Profile: p, typ: t, unit: unitOf(unitName), values: kind.ValuesOfProfile(p, r.dict),
	}
	if profile.unit.factor == 0 {
		profile.unit = unit{unitName, 1}
	}
	profile.each = shares.WeightingOf(typ, unitName, p.Period(), r.stringAt(p.PeriodType().UnitStrindex()))
	if t.Type == cpuTime {
		profile.unless = cpu
	}
	r.add(&profile)
	// Samples of a period are a time, unless the profiler has written that, too.
	if (typ == "samples" || typ == "sample") && periodType != "" && p.Period() > 0 {
		period := unitOf(r.stringAt(p.PeriodType().UnitStrindex()))
		derived := profile
		derived.typ.Type = kind.PlainType(periodType)
		if derived.typ.Type == cpu {
			derived.unless = cpuTime
		}
		if period.name == "s" && r.isWanted(derived.typ) && !r.hasType(derived.typ.Type) {
			derived.unit = unit{"s", otlp.SaturatingMultiply(period.factor, p.Period())}
			r.add(&derived)
		}
	}
	if engines[t.Type] && profile.unit.name == "s" && !r.isWanted(t) && !r.hasType(cpu) {
		profile.typ.Type = cpu
		r.add(&profile)
	}
}

const (
	cpu     = "cpu"
	cpuTime = "cpu_time"
)

// engines are those of async-profiler whose time is that of a processor. Its OTLP names types by them, once in count
// and once in ns.
var engines = map[string]bool{"itimer": true, "ctimer": true, "perf_events": true}

// input is a profile with what its values are.
type input struct {
	pprofile.Profile
	typ    selection.Type
	unit   unit
	values kind.Values
	each   shares.Weighting
	// unless is another type for the same time: a metric of both counts that, if the scope has it.
	unless string
}

func (r *Reducer) isWanted(t selection.Type) bool {
	return len(r.Set.Of(t)) > 0 || slices.ContainsFunc(r.Hot, func(h Hot) bool { return h.Type == t })
}

// hasType reports whether the current scope has profiles of a type. Its other types can be in another message, if it
// was split.
func (r *Reducer) hasType(typ string) bool { return r.order > 1 || r.isHere(typ) }

// isHere reports whether this message has profiles of a type in the current scope.
func (r *Reducer) isHere(typ string) bool {
	if r.scopeTypes == nil {
		r.scopeTypes = map[string]bool{}
		for _, p := range r.scope.Profiles().All() {
			r.scopeTypes[kind.PlainType(r.stringAt(p.SampleType().TypeStrindex()))] = true
		}
	}
	return r.scopeTypes[typ]
}

// add adds a profile to the metrics and functions of its type.
func (r *Reducer) add(p *input) {
	r.plan = r.plan[:0]
	isSimple := true
	for _, i := range r.Set.Of(p.typ) {
		metric := r.Set.Metrics[i]
		if !r.meets(i) {
			continue
		}
		if p.unless != "" && r.isHere(p.unless) &&
			slices.Contains(r.Set.Of(selection.Type{Profile: p.typ.Profile, Type: p.unless}), i) {
			continue
		}
		if (isMeasure(metric.Unit) || isMeasure(p.unit.name)) && metric.Unit != p.unit.name {
			r.result.Dropped[Unit] += p.Samples().Len()
			continue
		}
		if metric.IsGauge != (p.values == kind.Gauge) {
			r.result.Dropped[Values] += p.Samples().Len()
			continue
		}
		plan := planned{metric: i, source: -1, addition: -1}
		if p.values != kind.Delta {
			plan.source = len(r.result.Sources)
			r.result.Sources = append(r.result.Sources, r.source(p, i))
		}
		isSimple = isSimple && metric.IsSimple()
		r.plan = append(r.plan, plan)
	}
	isHot := r.beginHot(p)
	if len(r.plan) == 0 && !isHot {
		return
	}
	sum, exemplars := r.samples(p, isSimple, isHot)
	var fingerprint uint64
	if p.values != kind.Delta && len(r.plan) > 0 {
		fingerprint = r.fingerprint(p)
	}
	for i := range r.plan {
		plan := &r.plan[i]
		if plan.source >= 0 {
			source := &r.result.Sources[plan.source]
			source.Total, source.Fingerprint = sum.value, fingerprint
		}
		if r.Set.Metrics[plan.metric].IsSimple() {
			a := r.addition(plan, nil, "")
			a.Value = otlp.SaturatingAdd(a.Value, sum.value)
			a.Samples += sum.samples
			for _, x := range exemplars {
				a.Exemplars.Add(x)
			}
		}
	}
	r.endHot(p, sum)
	for _, plan := range r.plan {
		r.perFunction[plan.metric].clear()
	}
}

// meets reports whether the current resource meets a metric's conditions.
func (r *Reducer) meets(metric int) bool {
	if r.matches[metric] == unknown {
		r.matches[metric] = known
		for key, pattern := range r.Set.Metrics[metric].Resource {
			v, ok := r.resource.Get(key)
			if value := ""; ok {
				value = labelValue(v)
				ok = pattern.MatchString(value)
			}
			if !ok {
				r.matches[metric] = broken
			}
		}
	}
	return r.matches[metric] == known
}

func (r *Reducer) source(p *input, metric int) Source {
	at := uint64(p.Time())
	if p.DurationNano() < math.MaxInt64-min(at, math.MaxInt64) {
		at += p.DurationNano()
	}
	return Source{
		Identity: r.identity(p.Profile, p.typ.Profile, p.typ.Type), Metric: metric, Values: p.values,
		Time: int64(min(at, math.MaxInt64)),
	}
}

// seed is that of fingerprints, which are not kept longer than the process lives.
var seed = maphash.MakeSeed()

// namedSamples is how many samples of a profile count with their leaf's name in a fingerprint. Names cost more to find
// than all else here, and in a larger profile the values and depths differ.
const namedSamples = 256

// fingerprint returns a hash of what tells a profile from other profiles of the same time and process: its samples'
// values, depths and first leaves. The parts of a profile that dictionary_dedup divides share the profile's id.
func (r *Reducer) fingerprint(p *input) uint64 {
	samples, stacks := p.Samples(), r.dict.StackTable()
	r.hash.SetSeed(seed)
	for i := range samples.Len() {
		s := samples.At(i)
		stack, depth := s.StackIndex(), 0
		if uint(stack) < uint(stacks.Len()) {
			depth = stacks.At(int(stack)).LocationIndices().Len()
		}
		value := int64(s.TimestampsUnixNano().Len())
		if s.Values().Len() > 0 {
			value = s.Values().At(0)
		}
		r.key = binary.AppendUvarint(binary.AppendVarint(r.key[:0], value), uint64(depth))
		if i < namedSamples {
			name, _ := r.frames.Leaf(stack)
			r.key = dictionary.AppendString(r.key, kind.CutName(r.frames.Name(name)))
		}
		_, _ = r.hash.Write(r.key)
	}
	return r.hash.Sum64()
}

// total is what the samples of a profile add up to.
type total struct {
	value        int64
	sum, squares float64
	samples      int
}

func (r *Reducer) samples(p *input, isSimple, isHot bool) (t total, exemplars Exemplars) {
	samples, stacks, hasLinks := p.Samples(), r.dict.StackTable().Len(), r.links.Len() > 1
	for i := range samples.Len() {
		s := samples.At(i)
		value, reason := valueOf(s, stacks, p.values == kind.Gauge)
		if reason >= 0 {
			r.result.Dropped[reason] += max(1, len(r.plan))
			continue
		}
		value = otlp.SaturatingMultiply(value, p.unit.factor)
		t.value = otlp.SaturatingAdd(t.value, value)
		t.sum += float64(value)
		t.squares += float64(value) * float64(value)
		t.samples++
		var exemplar Exemplar
		if hasLinks && s.LinkIndex() > 0 {
			if exemplar = r.exemplar(p, s, value); exemplar.Value > 0 {
				exemplars.Add(exemplar)
			}
		}
		if isHot && value > 0 {
			r.addHot(s.StackIndex(), value)
		}
		if isSimple || value == 0 {
			continue
		}
		r.attributes.read(s)
		r.serial++
		for k := range r.plan {
			if !r.Set.Metrics[r.plan[k].metric].IsSimple() {
				r.conditional(&r.plan[k], s.StackIndex(), value, exemplar)
			}
		}
	}
	return t, exemplars
}

// valueOf returns the sum of the values of a sample. One that has timestamps alone counts once for each. What happens
// cannot be negative; a state can, as the difference of two.
func valueOf(s pprofile.Sample, stacks int, isState bool) (value int64, dropped Reason) {
	if stack := s.StackIndex(); stack != 0 && uint(stack) >= uint(stacks) {
		return 0, Index
	}
	values, timestamps := s.Values(), s.TimestampsUnixNano().Len()
	n := values.Len()
	switch {
	case n == 1 && timestamps <= 1:
		value = values.At(0)
	case n == 0 && timestamps > 0:
		return int64(timestamps), -1
	case n == 0, n != timestamps:
		return 0, Shape
	default:
		for k := range n {
			if values.At(k) < 0 && !isState {
				return 0, Negative
			}
			value = otlp.SaturatingAdd(value, values.At(k))
		}
	}
	if value < 0 && !isState {
		return 0, Negative
	}
	return value, -1
}

func (r *Reducer) exemplar(p *input, s pprofile.Sample, value int64) Exemplar {
	i := s.LinkIndex()
	if int(i) >= r.links.Len() {
		return Exemplar{}
	}
	link := r.links.At(int(i))
	x := Exemplar{Value: value, TraceID: link.TraceID(), SpanID: link.SpanID(), Time: p.Time()}
	if x.TraceID.IsEmpty() || x.SpanID.IsEmpty() {
		return Exemplar{}
	}
	if n := s.TimestampsUnixNano().Len(); n > 0 {
		x.Time = pcommon.Timestamp(s.TimestampsUnixNano().At(n - 1))
	}
	return x
}

// conditional adds a sample to those series of a metric that it is in.
func (r *Reducer) conditional(plan *planned, stack int32, value int64, exemplar Exemplar) {
	metric := r.Set.Metrics[plan.metric]
	if r.attributes.conditions&metric.ConditionBits != metric.ConditionBits {
		return
	}
	if metric.FunctionBits|metric.BelowBits != 0 {
		bits, ok := r.matcher.stack(stack)
		if !ok {
			r.result.Dropped[Index]++
			return
		}
		if !isMatch(metric, bits) {
			return
		}
	}
	if metric.Frame == selection.NoFrame {
		r.addition(plan, metric.SampleValues, "").add(value, r.serial, exemplar)
		return
	}
	names, ok := r.functions(stack, metric.Leaf)
	if !ok {
		return
	}
	// Series that samples distinguish are looked up for each frame.
	if !metric.Leaf && len(metric.SampleValues) > 0 && !r.frames.Spend(spentPerLookup*len(names)) {
		r.result.Dropped[Expansion]++
		return
	}
	for _, name := range names {
		if bits, _ := r.matcher.name(name); metric.FunctionBits == 0 || bits&metric.FunctionBits != 0 {
			r.addFrame(plan, name, value, exemplar)
		}
	}
}

// spentPerLookup is how much the lookup of a series costs, in visits of a frame.
const spentPerLookup = 32

// addFrame adds a sample to the series of a function or its package.
func (r *Reducer) addFrame(plan *planned, name int32, value int64, exemplar Exemplar) {
	metric := r.Set.Metrics[plan.metric]
	if len(metric.SampleValues) > 0 {
		r.addition(plan, metric.SampleValues, r.frame(metric, name)).add(value, r.serial, exemplar)
		return
	}
	additions := &r.perFunction[plan.metric]
	additions.begin(r.frames.Names() + 1)
	i := additions.at(name)
	if *i == 0 {
		r.addition(plan, nil, r.frame(metric, name))
		*i = int32(r.last) + 1
	}
	r.result.Additions[*i-1].add(value, r.serial, exemplar)
}

func (r *Reducer) frame(metric *selection.Metric, name int32) string {
	s := r.frames.Name(name)
	if metric.Frame == selection.ByPackage {
		s = frames.Package(s)
	}
	return kind.CutName(s)
}

// add adds a sample, unless it has been added for another function of the same package.
func (a *Addition) add(value int64, serial int, exemplar Exemplar) {
	if a.sample == serial {
		return
	}
	a.sample = serial
	a.Value = otlp.SaturatingAdd(a.Value, value)
	a.Samples++
	if exemplar.Value > 0 {
		a.Exemplars.Add(exemplar)
	}
}

func isMatch(m *selection.Metric, bits *matched) bool {
	switch {
	case m.BelowBit != 0 && m.FunctionBits != 0:
		return bits.below&m.BelowBit != 0
	case m.Leaf:
		return (m.FunctionBits == 0 || bits.leaf&m.FunctionBits != 0) && (m.BelowBits == 0 || bits.callers&m.BelowBits != 0)
	case m.BelowBits != 0:
		return bits.callers&m.BelowBits != 0
	default:
		return (bits.leaf|bits.callers)&m.FunctionBits != 0
	}
}

// addition returns the addition to a series of the current resource. It is valid until the next call.
func (r *Reducer) addition(plan *planned, sampleValues []int, frame string) *Addition {
	isPlain := len(sampleValues) == 0 && r.Set.Metrics[plan.metric].Frame == selection.NoFrame
	if plan.addition >= 0 && isPlain {
		return &r.result.Additions[plan.addition]
	}
	metric := r.Set.Metrics[plan.metric]
	if r.groups[plan.metric] == nil {
		r.groups[plan.metric] = values(r.resource, metric.ResourceKeys)
	}
	group := r.groups[plan.metric]
	r.key = binary.AppendUvarint(r.key[:0], uint64(plan.metric))
	for _, value := range group {
		r.key = dictionary.AppendString(r.key, value)
	}
	for _, i := range sampleValues {
		r.key = dictionary.AppendString(r.key, r.attributes.values[i])
	}
	r.key = dictionary.AppendString(r.key, frame)
	series := len(r.key)
	r.key = binary.AppendVarint(r.key, int64(plan.source))
	i, ok := r.byKey[string(r.key)]
	if !ok {
		a := Addition{Metric: plan.metric, Source: plan.source}
		if len(r.result.Additions) < r.MaxAdditions {
			a.Key, a.Resource, a.Frame = bytes.Clone(r.key[:series]), group, frame
			for _, k := range sampleValues {
				a.Sample = append(a.Sample, r.attributes.values[k])
			}
		} else { // the metric's series that has no attributes
			r.key = binary.AppendVarint(binary.AppendUvarint(append(r.key[:0], 0xff, 0xff), uint64(plan.metric)),
				int64(min(plan.source, 0)))
			i, ok = r.byKey[string(r.key)]
		}
		if !ok {
			i = len(r.result.Additions)
			r.byKey[string(r.key)] = i
			r.result.Additions = append(r.result.Additions, a)
		}
	}
	if isPlain {
		plan.addition = i
	}
	r.last = i
	return &r.result.Additions[i]
}
