// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

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
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/head"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// UnknownService is the service of a resource without service.name.
const UnknownService = kind.UnknownService

// scopeAttributes are those that describe the sample types of a pprof, so that it can be restored.
var scopeAttributes = []string{kind.AttributeSampleTypeOrder, kind.AttributeDefaultSampleType}

// addScratch is memory that Add reuses.
type addScratch struct {
	columns head.Encoder
	key     []byte
	clean   pcommon.Map
	types   map[[2]int32]int32
	namer   kind.Namer
	kept    []keptProfile
	// added are the profiles of the message, before what was known of their series.
	added  []addedChunk
	before []seriesBefore
}

// addedChunk is a profile that becomes one of a series of the block when it is in the log.
type addedChunk struct {
	series int32
	chunk  head.Chunk
}

// seriesBefore is what was known of a series before a profile.
type seriesBefore struct {
	use    *head.Use
	totals *head.Totals
	gauge  model.GaugeTimes
}

// undo forgets the profiles of the message. The same message can be added later as if it came for the first time.
func (a *adder) undo() {
	for _, before := range slices.Backward(a.scratch.before) {
		a.setTotals(before.use, before.totals)
		before.use.Gauge = before.gauge
	}
	a.scratch.added = a.scratch.added[:0]
}

// keptProfile is the series of a profile and the set of its attributes.
type keptProfile struct {
	series     int32
	attributes dictionary.AttributeSetIndex
}

// Added counts what Add did with one message.
type Added struct {
	// Profiles and Samples were kept; Moved of the profiles under their time of arrival.
	Profiles, Samples, Moved int
	// Refused counts profiles (for RefusedSamples: samples) that were not kept.
	Refused [model.NumRefused]int
	// Err is why nothing of the message was kept, or nil. Unless it is ErrMessageTooLarge, the same message may be kept
	// later.
	Err error
}

// Add keeps pd, or nothing of it if there is no room. It drops what it cannot understand. It only reads pd.
func (s *Store) Add(pd pprofile.Profiles, now time.Time) Added {
	cost := messageBytes(pd)
	if s.isLarge(cost) {
		s.addingLarge.Lock()
		defer s.addingLarge.Unlock()
	}
	s.adding.Lock()
	defer s.adding.Unlock()
	a := adder{Store: s, now: now, src: pd.Dictionary()}
	var reason model.Refused
	if a.block, reason, a.added.Err = s.room(pd, now, cost); a.added.Err != nil {
		a.added.Refused[reason] = pd.ProfileCount()
	} else {
		a.scratch.added, a.scratch.before = a.scratch.added[:0], a.scratch.before[:0]
		a.message(pd)
		if err := s.writeAhead(a.block, a.scratch.added); err != nil {
			a.undo()
			a.added = Added{Err: err}
			a.added.Refused[model.RefusedFull] = pd.ProfileCount()
		}
		for i := range a.scratch.added {
			added := &a.scratch.added[i]
			a.block.Add(&a.block.Series[added.series], added.chunk)
		}
		s.trimTotals()
		a.block.Measure()
		if cost > largeBytes { // do not keep scratch memory of that size for the next message
			s.importer = compact.Importer{}
			s.importer.Reset(a.block.Dict)
			s.scratch = addScratch{}
		}
	}
	s.evict(now)
	s.mu.Lock()
	for i, n := range a.added.Refused {
		s.stats.Refused[i] += n
	}
	s.mu.Unlock()
	return a.added
}

// adder adds one message. Its block is locked.
type adder struct {
	*Store
	block *head.Block
	src   pprofile.ProfilesDictionary
	now   time.Time
	added Added
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

func (a *adder) message(pd pprofile.Profiles) {
	defer a.begin()()
	resolved := compact.ResolveReferences(pd)
	// First import the stacks of all profiles, in the message's order: see ImportReached.
	kept := a.scratch.kept[:0]
	a.each(pd, resolved, func(_ int, p pprofile.Profile) {
		attributes := a.importer.AttributeSet(p.AttributeIndices())
		kept = append(kept, keptProfile{a.seriesOf(p, attributes), attributes})
		samples := p.Samples()
		for k := range samples.Len() {
			a.importer.Reach(samples.At(k).StackIndex())
		}
	})
	a.scratch.kept = kept
	a.importer.ImportReached()
	a.each(pd, resolved, func(index int, p pprofile.Profile) {
		a.profile(index, p, kept[0].series, kept[0].attributes)
		kept = kept[1:]
	})
}

// begin begins a message. The function that it returns ends it.
func (a *adder) begin() func() {
	a.importer.Begin(a.src)
	return func() {
		a.importer.End()
		if a.scratch.clean != (pcommon.Map{}) {
			(&xpdata.MapBuilder{}).UnsafeIntoMap(a.scratch.clean) // its strings are the message's
		}
	}
}

// each calls use with each profile of a message and its position in its scope. resolved has the attributes of resources
// and scopes.
func (a *adder) each(pd, resolved pprofile.Profiles, use func(index int, p pprofile.Profile)) {
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
func (a *adder) cleanResource() {
	a.resource, a.hasResource = a.clean(a.attributes), true
	a.service = kind.Service(a.resource)
	a.scratch.key = dictionary.AppendMap(a.scratch.key[:0], a.resource)
	a.resourceHash = sha256.Sum256(a.scratch.key)
}

func (a *adder) beginScope(profiles pprofile.ProfilesSlice) {
	a.sampleTypesOfOne, a.hasStated, a.hasScopeSet = 0, false, false
	if v, ok := a.scope.Get(scopeAttributes[0]); ok && v.Type() == pcommon.ValueTypeSlice {
		a.sampleTypesOfOne = v.Slice().Len()
	}
	if a.scratch.types == nil {
		a.scratch.types = map[[2]int32]int32{}
	}
	clear(a.scratch.types)
	a.scratch.namer.Begin(a.scope, profiles, a.src)
}

// statedName returns the name of the current scope's profiles, or "" if it states none.
func (a *adder) statedName() string {
	if a.hasStated {
		return a.stated
	}
	a.stated, a.hasStated = "", true
	if v, ok := a.scope.Get(kind.NameAttribute); ok && v.Type() == pcommon.ValueTypeStr {
		a.stated = kind.CutName(v.Str())
	} else if ok {
		// The string of a list costs as much as all that it refers to.
		if v, ok = a.importer.CleanValue(v); ok {
			a.stated = kind.CutName(v.AsString())
		}
	}
	return a.stated
}

// stringAt returns a string of the message, or "" if there is none.
func (a *adder) stringAt(i int32) string {
	if table := a.src.StringTable(); uint(i) < uint(table.Len()) {
		return kind.CutName(table.At(int(i)))
	}
	return ""
}

func (a *adder) profile(index int, p pprofile.Profile, series int32, attributes dictionary.AttributeSetIndex) {
	sr := &a.block.Series[series]
	c := head.Chunk{Profile: model.Profile{Time: int64(min(uint64(p.Time()), math.MaxInt64)),
		Duration: int64(min(p.DurationNano(), math.MaxInt64/4))}}
	c.Values = kind.ValuesOfProfile(p, a.src)
	cols := &a.scratch.columns
	cols.Reset()
	a.samples(p, &c.Profile)
	c.Place(a.first, a.last, a.now.UnixNano(), int64(a.Window()))
	a.scratch.before = append(a.scratch.before, seriesBefore{sr.Use, sr.Use.Totals, sr.Use.Gauge})
	switch c.Values {
	case kind.Gauge:
		sr.Use.Gauge.Hold(&c.Profile, cols.Hash(), int64(a.cfg.Resolution))
	case kind.Cumulative:
		before := sr.Use.Totals.Bytes()
		isInOrder := sr.Use.Difference(cols, &c.Profile)
		a.totalsBytes += sr.Use.Totals.Bytes() - before
		if !isInOrder {
			a.added.Refused[model.RefusedOrder]++
			return
		}
	}
	c.Samples = int32(len(cols.Values))
	c.Data = cols.Encode(c.Flags)
	c.Meta = a.block.Meta(model.Meta{
		PeriodType: a.importer.Field(p.PeriodType().TypeStrindex()),
		PeriodUnit: a.importer.Field(p.PeriodType().UnitStrindex()),
		Period:     p.Period(),
		Attributes: attributes,
		Scope:      a.scopeAttributeSet(),
		Position:   a.position(index, p),
	})
	a.scratch.added = append(a.scratch.added, addedChunk{series, c})
	a.added.Profiles++
	a.added.Samples += int(c.Samples)
	if c.Flags&model.IsMoved != 0 {
		a.added.Moved++
	}
}

// position returns the profile's position among those that were one pprof.
func (a *adder) position(index int, p pprofile.Profile) int32 {
	if n := a.sampleTypesOfOne; n > 0 {
		return int32(index % n)
	}
	t := [2]int32{p.SampleType().TypeStrindex(), p.SampleType().UnitStrindex()}
	position, ok := a.scratch.types[t]
	if !ok {
		position = int32(len(a.scratch.types))
		a.scratch.types[t] = position
	}
	return position
}

// samples fills the columns.
func (a *adder) samples(p pprofile.Profile, c *model.Profile) {
	cols, samples := &a.scratch.columns, p.Samples()
	a.first, a.last = math.MaxInt64, 0
	for i := range samples.Len() {
		sample := samples.At(i)
		values, timestamps := sample.Values(), sample.TimestampsUnixNano()
		n, nv := timestamps.Len(), values.Len()
		stack, why := a.importer.Stack(sample.StackIndex())
		if why != compact.Understood || (n == 0 && nv != 1) || (n > 0 && nv > 0 && nv != n) {
			a.added.Refused[model.RefusedSamples]++
			continue
		}
		attributes, link := a.importer.AttributeSet(sample.AttributeIndices()), a.importer.Link(sample.LinkIndex())
		if attributes != 0 {
			c.Flags |= model.HasAttributes
		}
		if link != 0 {
			c.Flags |= model.HasLinks
		}
		if n > 0 {
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
			cols.Stacks = append(cols.Stacks, int32(stack))
			cols.Attributes = append(cols.Attributes, int32(attributes))
			cols.Links = append(cols.Links, int32(link))
			cols.Timestamps = append(cols.Timestamps, timestamp)
			cols.Values = append(cols.Values, value)
		}
	}
}
