// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package head

import (
	"crypto/sha256"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// LargeBytes is the size above which scratch memory is not kept.
const LargeBytes = 4 << 20

// scopeAttributes are those that describe the sample types of a pprof, so that it can be restored.
var scopeAttributes = []string{kind.AttributeSampleTypeOrder, kind.AttributeDefaultSampleType}

// Adder reads messages into the last block.
type Adder struct {
	known *Known
	// window is how long profiles are kept, resolution the shortest interval of states.
	window, resolution int64

	importer compact.Importer
	scratch
}

// scratch is memory that messages reuse.
type scratch struct {
	columns Encoder
	key     []byte
	cleaned pcommon.Map
	types   map[[2]int32]int32
	namer   kind.Namer
	kept    []keptProfile
	added   []Added
	before  []seriesBefore
}

// NewAdder returns an Adder of profiles of series that are known.
func NewAdder(known *Known, window, resolution time.Duration) *Adder {
	return &Adder{known: known, window: int64(window), resolution: int64(resolution)}
}

// Begin begins a block.
func (a *Adder) Begin(e *Block) { a.importer.Reset(e.Dict) }

// Release frees the memory that messages reuse, after a large one.
func (a *Adder) Release(e *Block) {
	a.importer, a.scratch = compact.Importer{}, scratch{}
	a.Begin(e)
}

// Counts are what became of a message.
type Counts struct {
	// Profiles and Samples were kept; Moved of the profiles under their time of arrival.
	Profiles, Samples, Moved int
	// Refused counts profiles (for RefusedSamples: samples) that were not kept.
	Refused [model.NumRefused]int
	// Alternating is the service of a series whose totals are of several processes, or "".
	Alternating string
}

// Read reads a message into profiles of a block, which become a part of it by Keep, or are forgotten by Undo. It drops
// what it cannot understand. Series, and what they refer to, are in the block at once. They are valid until the next
// message.
func (a *Adder) Read(e *Block, pd pprofile.Profiles, now time.Time) (added []Added, counts Counts) {
	a.added, a.before = a.added[:0], a.before[:0]
	m := message{Adder: a, block: e, now: now, src: pd.Dictionary()}
	m.read(pd)
	return a.added, m.counts
}

// Keep adds the profiles of the message to the block.
func (a *Adder) Keep(e *Block) {
	for i := range a.added {
		e.Add(&e.Series[a.added[i].Series], a.added[i].Chunk)
	}
}

// Undo forgets the profiles of the message. The same message can be added later as if it came for the first time.
func (a *Adder) Undo() {
	for _, before := range slices.Backward(a.before) {
		a.known.setTotals(before.use, before.totals)
		before.use.Gauge = before.gauge
	}
	a.added = a.added[:0]
}

// SeriesOf returns the series of a message.
func SeriesOf(pd pprofile.Profiles, now time.Time) map[model.SeriesID]*Use {
	known, e := NewKnown(), New(now)
	m := message{Adder: NewAdder(known, 0, 0), block: e, now: now, src: pd.Dictionary()}
	m.Begin(e)
	defer m.begin()()
	m.each(pd, compact.ResolveReferences(pd), func(_ int, p pprofile.Profile) {
		m.seriesOf(p, m.importer.AttributeSet(p.AttributeIndices()))
	})
	return known.Series
}

// seriesBefore is what was known of a series before a profile.
type seriesBefore struct {
	use    *Use
	totals *Totals
	gauge  model.GaugeTimes
}

// keptProfile is the series of a profile and the set of its attributes.
type keptProfile struct {
	series     int32
	attributes dictionary.AttributeSetIndex
}

// message is one that is read.
type message struct {
	*Adder
	block  *Block
	src    pprofile.ProfilesDictionary
	now    time.Time
	counts Counts
	// first and last are the times of the first and the last observation of the current profile that has some.
	first, last int64

	// attributes are the current resource's. The first of its profiles makes a clean copy of them (resource) with its
	// hash, the first that is kept their set.
	attributes     pcommon.Map
	resource       pcommon.Map
	resourceHash   [sha256.Size]byte
	hasResource    bool
	service        string
	resourceSet    dictionary.AttributeSetIndex
	hasResourceSet bool
	// scope has the current scope's attributes. Its name and set are found when a profile needs them.
	scope            pcommon.Map
	scopeSet         dictionary.AttributeSetIndex
	hasScopeSet      bool
	stated           string
	hasStated        bool
	sampleTypesOfOne int
}

func (a *message) read(pd pprofile.Profiles) {
	defer a.begin()()
	resolved := compact.ResolveReferences(pd)
	// First import the stacks of all profiles, in the message's order: see ImportReached.
	kept := a.kept[:0]
	a.each(pd, resolved, func(_ int, p pprofile.Profile) {
		attributes := a.importer.AttributeSet(p.AttributeIndices())
		kept = append(kept, keptProfile{a.seriesOf(p, attributes), attributes})
		samples := p.Samples()
		for k := range samples.Len() {
			a.importer.Reach(samples.At(k).StackIndex())
		}
	})
	a.kept = kept
	a.importer.ImportReached()
	a.each(pd, resolved, func(index int, p pprofile.Profile) {
		a.profile(index, p, kept[0].series, kept[0].attributes)
		kept = kept[1:]
	})
}

// begin begins a message. The function that it returns ends it.
func (a *message) begin() func() {
	a.importer.Begin(a.src)
	return func() {
		a.importer.End()
		if a.cleaned != (pcommon.Map{}) {
			(&xpdata.MapBuilder{}).UnsafeIntoMap(a.cleaned) // its strings are the message's
		}
	}
}

// each calls use with each profile of a message and its position in its scope. resolved has the attributes of resources
// and scopes.
func (a *message) each(pd, resolved pprofile.Profiles, use func(index int, p pprofile.Profile)) {
	for r, rp := range pd.ResourceProfiles().All() {
		a.attributes = resolved.ResourceProfiles().At(r).Resource().Attributes()
		a.hasResource, a.hasResourceSet = false, false
		for i, sp := range rp.ScopeProfiles().All() {
			a.scope = resolved.ResourceProfiles().At(r).ScopeProfiles().At(i).Scope().Attributes()
			a.beginScope(sp.Profiles())
			for k, p := range sp.Profiles().All() {
				use(k, p)
			}
		}
	}
}

// cleanResource reads the current resource, within the importer's budget for strings that attributes share.
func (a *message) cleanResource() {
	a.resource, a.hasResource = a.clean(a.attributes), true
	a.service = kind.Service(a.resource)
	a.key = dictionary.AppendMap(a.key[:0], a.resource)
	a.resourceHash = sha256.Sum256(a.key)
}

func (a *message) beginScope(profiles pprofile.ProfilesSlice) {
	a.sampleTypesOfOne, a.hasStated, a.hasScopeSet = 0, false, false
	if v, ok := a.scope.Get(scopeAttributes[0]); ok && v.Type() == pcommon.ValueTypeSlice {
		a.sampleTypesOfOne = v.Slice().Len()
	}
	if a.types == nil {
		a.types = map[[2]int32]int32{}
	}
	clear(a.types)
	a.namer.Begin(a.scope, profiles, a.src)
}

// statedName returns the name of the current scope's profiles, or "" if it states none.
func (a *message) statedName() string {
	if a.hasStated {
		return a.stated
	}
	a.stated, a.hasStated = kind.Stated(a.scope), true
	return a.stated
}

// stringAt returns a string of the message, or "" if its index is out of range.
func (a *message) stringAt(i int32) string { return kind.CutName(otlp.StringAt(a.src, i)) }

func (a *message) profile(index int, p pprofile.Profile, series int32, attributes dictionary.AttributeSetIndex) {
	sr := &a.block.Series[series]
	c := Chunk{Profile: model.Profile{Time: int64(min(uint64(p.Time()), math.MaxInt64)),
		Duration: int64(min(p.DurationNano(), math.MaxInt64/4))}}
	c.Values = kind.ValuesOfProfile(p, a.src)
	cols := &a.columns
	cols.Reset()
	a.samples(p, &c.Profile)
	c.Place(a.first, a.last, a.now.UnixNano(), a.window)
	a.before = append(a.before, seriesBefore{sr.Use, sr.Use.Totals, sr.Use.Gauge})
	switch c.Values {
	case kind.Gauge:
		sr.Use.Gauge.Hold(&c.Profile, a.block.hash(cols), a.resolution)
	case kind.Cumulative:
		before, total := sr.Use.Totals.Bytes(), c.Total
		isNext := sr.Use.Totals == nil || sr.Use.Totals.At < c.End // not a part of the one before
		isInOrder := sr.Use.Difference(cols, &c.Profile)
		a.known.TotalsBytes += sr.Use.Totals.Bytes() - before
		if !isInOrder {
			a.counts.Refused[model.RefusedOrder]++
			return
		}
		if isNext && sr.Use.alternation.Note(total, c.Flags&model.IsReset != 0) {
			a.counts.Alternating = sr.Service
		}
	}
	c.Samples = int32(len(cols.Values))
	c.Data = cols.Encode(c.Flags)
	strs := &a.block.Dict.Strings
	c.MetaAt = a.block.Meta(model.Meta{
		PeriodType: strs.At(a.importer.Field(p.PeriodType().TypeStrindex())),
		PeriodUnit: kind.UnitName(strs.At(a.importer.Field(p.PeriodType().UnitStrindex()))),
		Period:     p.Period(),
		Attributes: attributes,
		Scope:      a.scopeAttributeSet(),
		Position:   a.position(index, p),
	})
	a.added = append(a.added, Added{series, c})
	a.counts.Profiles++
	a.counts.Samples += int(c.Samples)
	if c.Flags&model.IsMoved != 0 {
		a.counts.Moved++
	}
}

// position returns the profile's position among those that were one pprof.
func (a *message) position(index int, p pprofile.Profile) int32 {
	if n := a.sampleTypesOfOne; n > 0 {
		return int32(index % n)
	}
	t := [2]int32{p.SampleType().TypeStrindex(), p.SampleType().UnitStrindex()}
	position, ok := a.types[t]
	if !ok {
		position = int32(len(a.types))
		a.types[t] = position
	}
	return position
}

// samples fills the columns.
func (a *message) samples(p pprofile.Profile, c *model.Profile) {
	cols, samples := &a.columns, p.Samples()
	a.first, a.last = math.MaxInt64, 0
	for i := range samples.Len() {
		sample := samples.At(i)
		values, timestamps := sample.Values(), sample.TimestampsUnixNano()
		n, nv := timestamps.Len(), values.Len()
		stack, why := a.importer.Stack(sample.StackIndex())
		if why != compact.Understood || (n == 0 && nv != 1) || (n > 0 && nv > 0 && nv != n) {
			a.counts.Refused[model.RefusedSamples]++
			continue
		}
		key := model.RowKey{Stack: int32(stack), Attributes: int32(a.importer.AttributeSet(sample.AttributeIndices())),
			Link: int32(a.importer.Link(sample.LinkIndex()))}
		if c.Flags |= key.Flags(); n > 0 {
			c.Flags |= model.HasTimestamps
		}
		for k := range max(n, 1) {
			value, timestamp := int64(1), int64(0)
			if nv > 0 {
				value = values.At(k)
			}
			if n > 0 {
				at := int64(min(timestamps.At(k), math.MaxInt64))
				a.first, a.last = min(a.first, at), max(a.last, at)
				timestamp = at - c.Time
			}
			c.Total = otlp.SaturatingAdd(c.Total, value)
			cols.Append(key, timestamp, value)
		}
	}
}
