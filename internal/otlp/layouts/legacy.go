// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layouts

import (
	"fmt"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	profilekind "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/messages"
	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/wire"
)

// legacyReader reads a message of 1.3 to 1.7 into a dictionary of the current form:
//
//	frames    resources and scopes are unmarshalled by pdata, without their profiles
//	profile   for each profile: its tables are listed, then its header and samples are read
//	sample    stack, attributes and link are interned when a sample reaches them
//	emit      one Profile for each sample type, split by shape
type legacyReader struct {
	layout Layout
	schema *messages.Layout
	dict   *dictionary.Dictionary
	stats  *Stats
	// cleaner repairs the values of attributes.
	cleaner compact.Importer
	// shared are the tables of the message, in 1.6 and 1.7.
	shared legacyTables

	// stackRefs is the remaining budget of stack entries: the ranges of samples may overlap.
	stackRefs int
	// scopes are those of the message, and profiles the bytes of their profiles.
	scopes   []legacyScope
	profiles [][]byte
	// scopeBudget is how many more bytes of scopes may be copied.
	scopeBudget int
	// commentBudget is how many more bytes of comments may be written: a message can refer to a comment many times.
	// copyBudget is how many more bytes of attribute indices and timestamps the profiles of several sample types may take,
	// since each type has its own copies.
	commentBudget, copyBudget int

	meter *pdatasize.Meter
	// builtBytes is the memory of the lists of entries, and of the profiles that are emitted.
	builtBytes int
	// isMalformed reports that a resource, scope, profile or sample is not a message, so that the number of lost samples
	// is unknown.
	isMalformed bool

	// Scratch.
	lines   []dictionary.Line
	stack   []int32
	keySeen []uint32
	set     uint32
}

// legacyScope is a scope of a message: its size without its profiles, and how many those are.
type legacyScope struct{ bytes, profiles int32 }

// listFactor is the memory of the lists of a message's entries, and of copies of attributes.
const listFactor = 12

// reserve reserves what has been built, and more bytes.
func (r *legacyReader) reserve(more int) error {
	return r.meter.GrowTo(r.builtBytes + r.dict.BuildBytes() + more)
}

// memory returns what the profile takes, and will take as pdata: each value is a sample of the Profile of its type,
// with a copy of the timestamps, as far as copyBudget allows.
func (p *legacyProfile) memory(copyBudget int) int {
	const sampleBytes, numberBytes = 64, 24
	timestamps := min(len(p.timestamps)*max(1, len(p.types)), len(p.timestamps)+copyBudget/8)
	return sampleBytes*len(p.samples) + numberBytes*(len(p.values)+timestamps) +
		pdatasize.SampleBytes*max(len(p.samples), len(p.values))
}

// stackRefsPerByte bounds the locations that the samples of a message name, in all: each takes at least a byte if
// ranges do not overlap.
const stackRefsPerByte = 4

// copiesPerByte bounds copyBudget: it suffices for 16 sample types with 8 attributes each.
const copiesPerByte = 16

func readLegacy(data []byte, layout Layout, stats *Stats, meter *pdatasize.Meter) (pprofile.Profiles, error) {
	r := &legacyReader{
		layout: layout, schema: messages.Layouts[layout], dict: dictionary.New(), stats: stats,
		stackRefs: stackRefsPerByte * len(data), scopeBudget: maxShared + len(data),
		commentBudget: maxShared + len(data), copyBudget: maxShared + copiesPerByte*len(data),
		meter: meter, builtBytes: listFactor * len(data),
	}
	if err := r.reserve(0); err != nil {
		return pprofile.Profiles{}, err
	}
	profiles, err := r.unmarshalEnvelopes(data)
	if err != nil {
		return pprofile.Profiles{}, err
	}
	next, contents := r.scopes, r.profiles
	for _, rp := range profiles.ResourceProfiles().All() {
		scopes := rp.ScopeProfiles()
		for s := range scopes.Len() { // profile may append scopes
			for range next[0].profiles {
				dropped := stats.DroppedSamples()
				if err := r.profile(contents[0], scopes, s, int(next[0].bytes)); err != nil {
					return pprofile.Profiles{}, err
				}
				if stats.DroppedSamples() > dropped {
					stats.IncompleteProfiles++
				}
				contents = contents[1:]
			}
			next = next[1:]
		}
		scopes.RemoveIf(func(scope pprofile.ScopeProfiles) bool { return scope.Profiles().Len() == 0 })
	}
	if r.isMalformed {
		return pprofile.Profiles{}, errMalformed
	}
	stats.Repaired[RepairDepth] += r.cleaner.Repairs[compact.RepairAttributeDepth]
	stats.Repaired[RepairInvalidUTF8] += r.cleaner.Repairs[compact.RepairInvalidUTF8]
	profiles.ResourceProfiles().RemoveIf(func(rp pprofile.ResourceProfiles) bool { return rp.ScopeProfiles().Len() == 0 })
	if r.dict.StringBytes()*2 < len(data) {
		r.dict.DetachStrings()
	}
	r.dict.CopyTo(profiles.Dictionary())
	return profiles, nil
}

// unmarshalEnvelopes unmarshals the message without its profiles and tables, and lists the profiles' bytes by scope.
func (r *legacyReader) unmarshalEnvelopes(data []byte) (profiles pprofile.Profiles, err error) {
	var request []byte
	f := wire.New(data)
	for f.Next() {
		known := r.schema.Request.Field(f.Number, f.Wire)
		switch {
		case known == nil:
		case known.Name == "resource_profiles":
			request = appendBytesField(request, 1, r.envelope(f.Content, r.scope))
		case known.Name == "dictionary":
			for df := wire.New(f.Content); df.Next(); {
				if known := r.schema.Dictionary.Field(df.Number, df.Wire); known != nil {
					r.table(&r.shared, known, &df)
				}
			}
		default:
			r.table(&r.shared, known, &f)
		}
	}
	if f.IsMalformed() {
		return profiles, errMalformed
	}
	memory, err := pdatasize.Profiles(request)
	if err != nil {
		return profiles, err
	}
	r.builtBytes += memory
	if err := r.reserve(0); err != nil {
		return profiles, err
	}
	profiles, err = (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(request)
	if err != nil {
		return profiles, fmt.Errorf("resources and scopes: %w", err)
	}
	return profiles, nil
}

// envelope copies the fields of a resource or a scope, which are messages and text. In place of those of its list,
// field 2, it writes what replace returns, unless that is nil.
func (r *legacyReader) envelope(data []byte, replace func(content []byte) []byte) []byte {
	envelope := []byte{}
	f := wire.New(data)
	for f.Next() {
		content := f.Content
		r.isMalformed = r.isMalformed || f.Number <= envelopeFields && f.Wire != protowire.BytesType // such as a pprof
		if f.Number == 2 && f.Wire == protowire.BytesType {
			content = replace(content)
		}
		if content != nil {
			envelope = appendBytesField(envelope, f.Number, content)
		}
	}
	r.isMalformed = r.isMalformed || f.IsMalformed()
	return envelope
}

// envelopeFields is the last field of a resource or a scope: the URL of its schema.
const envelopeFields = 3

func (r *legacyReader) scope(data []byte) []byte {
	before := len(r.profiles)
	envelope := r.envelope(data, func(profile []byte) []byte {
		r.profiles = append(r.profiles, profile)
		return nil
	})
	r.scopes = append(r.scopes, legacyScope{bytes: int32(len(envelope)), profiles: int32(len(r.profiles) - before)})
	return envelope
}

func appendBytesField(b []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), content)
}

// table adds a field of a table to t, and reports whether the field is one.
func (r *legacyReader) table(t *legacyTables, known *messages.Field, f *wire.Reader) bool {
	switch known.Name {
	case "string_table":
		r.addString(t, f.Content)
	case "mapping", "mapping_table":
		t.mappings.add(known.Message, f.Content)
	case "location", "location_table":
		t.locations.add(known.Message, f.Content)
	case "function", "function_table":
		t.functions.add(known.Message, f.Content)
	case "link_table":
		t.links.add(known.Message, f.Content)
	case "attribute_table":
		t.attributes.add(known.Message, f.Content)
	case "attribute_units":
		t.attributeUnits = append(t.attributeUnits, valueType(known.Message, f.Content))
	case "location_indices":
		t.locationIndices = appendVarints(t.locationIndices, f)
	default:
		return false
	}
	return true
}

// finish prepares tables for lookups, after all their entries were added.
func (r *legacyReader) finish(t *legacyTables) {
	if len(t.attributeUnits) == 0 {
		return
	}
	t.units = map[string]uint64{}
	seen := map[uint64]bool{} // a string is hashed once, however many entries refer to it
	for _, u := range slices.Backward(t.attributeUnits) {
		if seen[u.typ] {
			continue
		}
		seen[u.typ] = true
		key := r.stringAt(t, u.typ)
		if _, known := t.units[key]; !known { // the last one of a key is used
			t.units[key] = u.unit
		}
	}
	t.attributeUnits = nil
}

// legacyProfile is a profile's header and samples.
type legacyProfile struct {
	types              []legacyType
	periodType         legacyType
	period             int64
	inner              []byte // of a container
	start, end         uint64 // of a container
	time, duration     uint64
	defaultType        int // an index of types, or -1
	defaultTypeName    uint64
	hasDefaultTypeName bool
	id                 pprofile.ProfileID
	dropped            uint32
	payloadFormat      string
	payload            []byte
	comments           []int32
	attributes         attributeSet
	samples            []legacySample
	values             []int64
	timestamps         []uint64
}

type legacyType struct {
	typ, unit   uint64
	temporality profilekind.Temporality
}

type legacySample struct {
	stack      dictionary.StackIndex
	attributes dictionary.AttributeSetIndex
	link       dictionary.LinkIndex
	// The sample's values and timestamps end here; they begin where those of the sample before end.
	valuesEnd, timestampsEnd int
}

// profile reads a profile and adds it to scope s. If it has several sample types, which belong together, it goes into a
// copy of that scope.
func (r *legacyReader) profile(data []byte, scopes pprofile.ScopeProfilesSlice, s, scopeBytes int) error {
	p := &legacyProfile{defaultType: -1}
	t := &r.shared
	own := legacyTables{}
	switch r.layout {
	case V1_3, V1_4:
		t = &own
	default:
		t.locationIndices = t.locationIndices[:0]
	}
	p.attributes = attributeSet{reader: r, tables: t}
	m := r.schema.Profile
	r.tablesAndHeader(p, t, m, data)
	if r.layout == V1_3 {
		data, m = p.inner, profile1x3
		r.tablesAndHeader(p, t, m, data)
		r.detectIDs(t, data)
	}
	if len(t.strings) == 0 { // the fields of a log record, a metric or a span can be those of a profile
		return errOtherSignal
	}
	if len(p.types) == 0 {
		p.types = []legacyType{{}}
	}
	r.finish(t)
	for f := wire.New(data); f.Next(); {
		known := m.Field(f.Number, f.Wire)
		if known == nil {
			continue
		}
		switch known.Name {
		case "sample":
			const checkEvery = 1 << 8
			if r.sample(p, t, f.Content); len(p.samples)%checkEvery == 0 {
				if err := r.reserve(p.memory(r.copyBudget)); err != nil {
					return err
				}
			}
		case "attribute_indices":
			p.attributes.addIndices(&f)
		case "drop_frames", "keep_frames":
			p.attributes.addString("pprof.profile."+known.Name, f.Value)
		}
	}
	if len(p.samples) == 0 {
		return nil
	}
	const profileBytes = 2 << 10
	r.builtBytes += p.memory(r.copyBudget) + profileBytes*len(p.types)
	if err := r.reserve(0); err != nil {
		return err
	}
	scope := scopes.At(s)
	if len(p.types) > 1 && scopeBytes <= r.scopeBudget {
		r.scopeBudget -= scopeBytes
		scope = scopes.AppendEmpty()
		scopes.At(s).Scope().CopyTo(scope.Scope())
		scope.SetSchemaUrl(scopes.At(s).SchemaUrl())
	}
	r.emit(p, t, scope)
	return nil
}

// tablesAndHeader reads the fields of a profile, or of its container, that come before samples can be read.
func (r *legacyReader) tablesAndHeader(p *legacyProfile, t *legacyTables, m *messages.Message, data []byte) {
	f := wire.New(data)
	for f.Next() {
		if known := m.Field(f.Number, f.Wire); known != nil && !r.table(t, known, &f) {
			r.header(p, known, &f)
		}
	}
	r.isMalformed = r.isMalformed || f.IsMalformed()
}

// header reads a field of a profile or its container that is neither table nor sample.
func (r *legacyReader) header(p *legacyProfile, known *messages.Field, f *wire.Reader) {
	switch known.Name {
	case "profile":
		p.inner = f.Content
	case "start_time_unix_nano":
		p.start = f.Value
	case "end_time_unix_nano":
		p.end = f.Value
	case "profile_id":
		copy(p.id[:], f.Content)
	case "dropped_attributes_count":
		p.dropped = uint32(f.Value)
	case "original_payload_format":
		p.payloadFormat = r.validString(f.Content)
	case "original_payload":
		p.payload = f.Content
	case "attributes":
		if key, value := r.keyValue(f.Content); key != "" {
			p.attributes.add(key, value, 0)
		}
	case "sample_type":
		p.addType(valueType(known.Message, f.Content))
	case "period_type":
		p.periodType = valueType(known.Message, f.Content)
	case "period":
		p.period = int64(f.Value)
	case "time_nanos":
		p.time = uint64(r.notNegative(int64(f.Value)))
	case "duration_nanos":
		p.duration = uint64(r.notNegative(int64(f.Value)))
	case "default_sample_type", "default_sample_type_strindex":
		p.defaultTypeName, p.hasDefaultTypeName = f.Value, f.Value != 0
	case "default_sample_type_index":
		p.defaultType = int(clampTo[int32](f.Value))
	case "comment", "comment_strindices":
		p.comments = appendVarints(p.comments, f)
	}
}

// valueType reads a type, or the key of attributes, with its unit.
func valueType(m *messages.Message, data []byte) (v legacyType) {
	m.Each(data, func(known *messages.Field, f *wire.Reader) {
		switch known.Name {
		case "type", "type_strindex", "attribute_key", "attribute_key_strindex":
			v.typ = f.Value
		case "unit", "unit_strindex":
			v.unit = f.Value
		case "aggregation_temporality":
			v.temporality = temporalityOf(f.Value)
		}
	})
	return v
}

// addType adds a sample type. Some profilers repeated theirs once for each sample.
func (p *legacyProfile) addType(v legacyType) {
	if n := len(p.types); n > 0 && p.types[n-1] == v {
		return
	}
	p.types = append(p.types, v)
}

// sample reads a sample's stack, attributes, link, values and timestamps.
func (r *legacyReader) sample(p *legacyProfile, t *legacyTables, data []byte) {
	s := legacySample{}
	set := attributeSet{reader: r, tables: t}
	var start, length uint64
	values, timestamps := len(p.values), len(p.timestamps)
	r.stack = r.stack[:0]
	isWhole := r.schema.Sample.Each(data, func(known *messages.Field, f *wire.Reader) {
		switch known.Name {
		case "location_index":
			r.stack = appendVarints(r.stack, f)
		case "locations_start_index":
			start = f.Value
		case "locations_length":
			length = f.Value
		case "value":
			p.values = appendVarints(p.values, f)
		case "timestamps_unix_nano":
			p.timestamps = appendVarints(p.timestamps, f)
		case "attributes", "attribute_indices":
			set.addIndices(f)
		case "link", "link_index":
			s.link = r.link(t, f.Value)
		case "label":
			r.label(t, &set, f.Content)
		}
	})
	r.isMalformed = r.isMalformed || !isWhole
	drop := func(why DropReason) {
		r.stats.Dropped[why]++
		p.values, p.timestamps = p.values[:values], p.timestamps[:timestamps]
	}
	if why, ok := r.resolveStack(t, start, length); !ok {
		drop(why)
		return
	}
	if len(p.values) == values && len(p.timestamps) == timestamps {
		drop(DropEmpty)
		return
	}
	if n := len(p.values) - values; n > 0 && n != len(p.types) && (len(p.types) > 1 || n != len(p.timestamps)-timestamps) {
		r.stats.Repaired[RepairValueCount]++
		p.values = p.values[:values+min(n, len(p.types))]
	}
	s.stack = r.dict.Stacks.Intern(r.stack)
	s.attributes = set.intern()
	s.valuesEnd, s.timestampsEnd = len(p.values), len(p.timestamps)
	p.samples = append(p.samples, s)
}

// resolveStack replaces a sample's locations in r.stack by those of the dictionary. length locations from start on are
// the sample's if length is not 0. They count in the profile's location indices (opentelemetry-proto 1.4, Sample), or
// in its location table if it has no such indices (1.3, Sample).
func (r *legacyReader) resolveStack(t *legacyTables, start, length uint64) (why DropReason, ok bool) {
	if length > 0 {
		size, isTable := uint64(len(t.locationIndices)), false
		if size == 0 {
			size, isTable = uint64(len(t.locations.entries)), true
		}
		if start > size || length > size-start {
			return DropStackRange, false
		}
		if r.stackRefs -= int(length); r.stackRefs < 0 {
			return DropExpansion, false
		}
		r.stack = r.stack[:0]
		if isTable {
			for i := range length {
				r.stack = append(r.stack, int32(r.locationAt(t, int(start+i))))
			}
			return 0, true
		}
		r.stack = append(r.stack, t.locationIndices[start:start+length]...)
	}
	for i, ref := range r.stack {
		at, ok := t.locations.entry(uint64(uint32(ref)))
		if !ok {
			return DropLocation, false
		}
		r.stack[i] = int32(r.locationAt(t, at))
	}
	return 0, true
}

// label adds a label of pprof, which 1.3 still had, as an attribute.
func (r *legacyReader) label(t *legacyTables, set *attributeSet, data []byte) {
	var key, str, num, unit uint64
	for f := wire.New(data); f.Next(); {
		switch f.Number {
		case 1:
			key = f.Value
		case 2:
			str = f.Value
		case 3:
			num = f.Value
		case 4:
			unit = f.Value
		}
	}
	name := r.internString(t, key)
	if name == 0 {
		return
	}
	if str != 0 {
		set.addIndex(r.stringAttribute(t, stringAttribute{keyIndex: key, value: str}, name))
		return
	}
	set.addIndex(r.dict.Attributes.Intern(dictionary.Attribute{
		Key: name, Value: dictionary.IntValue(int64(num)), Unit: r.internString(t, unit),
	}))
}

// detectIDs decides whether the references of a profile of 1.3 mean pprof's ids or positions: profilers sent both. They
// mean ids if the entries have ids, and either a reference lies beyond the table or all are from 1 to the largest id.
func (r *legacyReader) detectIDs(t *legacyTables, inner []byte) {
	locations, mappings, functions := noReferences, noReferences, noReferences
	for sample := range wire.Messages(inner, 2) {
		for s := wire.New(sample); s.Next(); {
			if s.Number == 1 {
				r.stack = appendVarints(r.stack[:0], &s)
				locations.add(r.stack...)
			}
		}
	}
	locations.add(t.locationIndices...)
	for _, entry := range t.locations.entries {
		mapping := uint64(0)
		for f := wire.New(entry); f.Next(); {
			switch f.Number {
			case 2:
				mapping = f.Value
			case 4:
				function := uint64(0)
				for line := wire.New(f.Content); line.Next(); {
					if line.Number == 1 {
						function = line.Value
					}
				}
				functions.add(clampTo[int32](function))
			}
		}
		mappings.add(clampTo[int32](mapping))
	}
	t.locations.ids = locations.ids(&t.locations)
	t.mappings.ids = mappings.ids(&t.mappings)
	t.functions.ids = functions.ids(&t.functions)
}

type referenceRange struct{ smallest, largest int32 }

var noReferences = referenceRange{smallest: math.MaxInt32, largest: math.MinInt32}

func (r *referenceRange) add(refs ...int32) {
	for _, ref := range refs {
		r.smallest, r.largest = min(r.smallest, ref), max(r.largest, ref)
	}
}

// ids returns the positions of a table's entries by their ids, or nil if the references mean positions.
func (r *referenceRange) ids(t *legacyTable) map[uint64]int32 {
	if *r == noReferences || len(t.entries) == 0 {
		return nil
	}
	ids := make(map[uint64]int32, len(t.entries))
	largest := uint64(0)
	for i, entry := range t.entries {
		id := uint64(0)
		for f := wire.New(entry); f.Next(); {
			if f.Number == 1 && f.Wire == protowire.VarintType {
				id = f.Value
			}
		}
		if id == 0 {
			return nil
		}
		ids[id], largest = int32(i), max(largest, id)
	}
	if uint64(r.largest) >= uint64(len(t.entries)) || r.smallest >= 1 && uint64(r.largest) == largest {
		return ids
	}
	return nil
}

// profileComments makes an attribute of a profile's comments.
func (r *legacyReader) profileComments(t *legacyTables, comments []int32) dictionary.Value {
	value := pcommon.NewValueSlice()
	for _, c := range comments {
		s := r.stringAt(t, uint64(uint32(c)))
		if r.commentBudget -= len(s); r.commentBudget < 0 {
			r.stats.Repaired[RepairExpansion]++
			break
		}
		value.Slice().AppendEmpty().SetStr(s)
	}
	return dictionary.ValueOf(value)
}

// maxShared bounds, in addition to the message's size, how many bytes are written of strings that a message has once
// and refers to often.
const maxShared = 64 << 10

// order returns the sample types in the order of their profiles: the default first.
func (p *legacyProfile) order(r *legacyReader, t *legacyTables) []int {
	if p.hasDefaultTypeName {
		name, differs := r.stringAt(t, p.defaultTypeName), map[uint64]bool{} // names are compared once each
		p.defaultType = slices.IndexFunc(p.types, func(v legacyType) bool {
			if differs[v.typ] {
				return false
			}
			differs[v.typ] = r.stringAt(t, v.typ) != name
			return !differs[v.typ]
		})
	}
	order := make([]int, 0, len(p.types))
	if p.defaultType >= 0 && p.defaultType < len(p.types) {
		order = append(order, p.defaultType)
	}
	for i := range p.types {
		if i != p.defaultType {
			order = append(order, i)
		}
	}
	return order
}
