// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package encode writes OTLP profiles as pprof payloads: the one writer of pprof. Encode groups the profiles of a
// scope (group.go), joins their samples by identity (join.go), writes each sample with its stack and labels (sample.go,
// labels.go) and then the table entries that the samples refer to (tables.go). Writer is for formats that use pprof in
// their own way (writer.go).
package encode

import (
	"bytes"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// Payload is one pprof payload and the OTLP profiles that it was made of.
type Payload struct {
	// ResourceIndex and ScopeIndex are the position of the profiles in the input.
	ResourceIndex, ScopeIndex int
	// ProfileIndices[i] is the profile, within its scope, that became the payload's sample type i. There are twice as many
	// as sample types if a second list of profiles, without timestamps, follows those with timestamps.
	ProfileIndices []int
	// Samples is the number of samples in the pprof.
	Samples int
	// Bytes is the pprof protobuf, uncompressed.
	Bytes []byte
}

// Stats counts what Encode did with one call's input.
type Stats struct {
	// Samples is the number of pprof samples that were written.
	Samples int
	// Dropped is the number of samples that were left out because the pprofs would have become too large: see Encode.
	Dropped int
	// LeftOut counts the attributes of samples that were left out since the format uses their names for a field of the
	// sample that is set: its link or its time. It counts once per payload and attribute, however many samples have it.
	LeftOut int
}

// Encode turns OTLP profiles into uncompressed pprof payloads; pd is only read.
//
// The profiles of one scope that share time, duration, period, period type and attributes become the
// sample types of one pprof. If the scope has the attribute `pprof.scope.sample_type_order`, and its
// length n divides their number, every n consecutive profiles are one pprof in that order. Without it
// they keep their order, a sample type that comes again starts another pprof, and
// pprof's default sample type is the first profile's, unless the scope names another.
// (More than 64 sample types stay together only if that keeps the pprof small.) The samples of such
// profiles are joined by their identity {stack, attributes, link}; a value that a profile lacks is 0.
//
// A sample with timestamps becomes one pprof sample per timestamp, which is the numeric label `timestamps_unix_nano` in
// `nanoseconds`, or the label that the payload had; without values each counts 1. Profiles that differ only in having
// timestamps, those that have them first, are one pprof; otherwise profiles with and without timestamps are not mixed.
// A link becomes the labels `trace_id` and `span_id` in lower-case hex. Beside a link or a timestamp, an attribute with
// the name of its label is left out, since readers could not tell them apart. Any other attribute becomes labels of its
// key:
//
//	attribute value                   label
//	string                            string
//	int                               number with the attribute's unit
//	bool                              string "true" or "false"
//	double                            string, the shortest decimal that reads back the same; "NaN", "+Inf", "-Inf"
//	bytes                             string, base64 with padding
//	array of strings, ints and        one label each, in order; the ints with the attribute's
//	{"value": int, "unit": string}      unit, the maps as a number with the unit they name
//	any other array, empty ones too   string, the array as JSON
//	map                               string, the map as JSON, keys in their order
//	none                              string "null"
//
// What pprof has no place for is left out: other attributes of profiles than pprof.profile.*, of mappings than the
// first build id and pprof.mapping.*, of locations than pprof.location.is_folded, and units of what is no number.
// Resources, scopes, profile ids and original payloads are where Payload's indices lead to.
//
// In JSON, bytes are base64 strings, doubles that JSON cannot represent are strings, and values nested deeper than 1000
// levels are null.
//
// Samples of OTLP share stacks and attributes, those of pprof repeat them, and each pprof has tables of its own. All
// pprofs together take at most 1 MiB and 64 times the size of pd as protobuf: samples and profiles beyond that are left
// out and counted.
//
// pd should follow OTLP's rules. An index out of range, or a sample whose numbers of values and timestamps do not
// match, is an error that names it. Entries that repeat each other are written as they are, nothing is lost.
func Encode(pd pprofile.Profiles) ([]Payload, Stats, error) { return new(View).Encode(pd) }

// Encode is the package's Encode for a message that is changed by the view.
func (v *View) Encode(pd pprofile.Profiles) ([]Payload, Stats, error) {
	e := newEncoder(pd)
	e.view = *v
	defer e.release()
	var out []Payload
	resources := pd.ResourceProfiles()
	for r := range resources.Len() {
		scopes := resources.At(r).ScopeProfiles()
		for s := range scopes.Len() {
			e.resource, e.scope = r, s
			e.readScope(scopes.At(s).Scope().Attributes())
			for _, group := range e.groupProfiles(scopes.At(s)) {
				before := e.stats.Samples
				payload := e.encodeGroup(scopes.At(s), group)
				if e.err != nil {
					return nil, e.stats, e.err
				}
				if payload != nil {
					out = append(out,
						Payload{ResourceIndex: r, ScopeIndex: s, ProfileIndices: group.profiles, Samples: e.stats.Samples - before,
							Bytes: payload})
				}
			}
		}
	}
	return out, e.stats, nil
}

// encoder turns the groups of one Profiles into payloads, one after another. What depends on the
// payload is reset between them at the cost of what the payload used, not of the dictionary's size.
type encoder struct {
	message pprofile.Profiles
	dict    pprofile.ProfilesDictionary
	view    View
	stats   Stats
	// err is the first fault. The functions below go on after it with a harmless value and stop
	// at the next message, so that the hot path does not check it at every field.
	err error
	// resource, scope, profile and sample are what is being written, for errors.
	resource, scope, profile, sample int

	// order and defaultType are what the scope records about the pprof that its profiles were decoded from. order is nil
	// if it is not a permutation, even if hasOrder.
	order                []int
	defaultType          string
	hasOrder, hasDefault bool

	// cpuTimes are those that the view has beside profiles of the scope.
	cpuTimes map[int]CPUTime

	// out is the payload so far; the caller gets a copy of its exact size.
	out     []byte
	strings stringTable
	// shared has the fields that any number of samples copy: the location ids of stacks, the labels of attributes and of
	// links.
	shared                    []byte
	stacks, attributes, links sparse[span]
	timestampLabel            []byte
	// reserved has the attributes of a name that the format uses for the link or the time of a sample, and whether they
	// have been left out. There are hardly ever any.
	reserved map[int32]reservedAttribute
	// reservedNames are further names, which are those of the writer's own labels.
	reservedNames []string
	origin        origin

	locations, functions, mappings reach

	sets   dictionary.AttributeSets
	set    []int32 // scratch, as is packed
	packed []byte
	// kept are the attributes of the current sample that become labels.
	kept   []int32
	join   joiner
	values []int64

	// written is the size of the payloads before, budget what all may take: minBytes until that does not suffice,
	// then more by the size of message.
	written, budget int64
	isSized         bool
	// buildIDs are the payload's indices of build ids, by their attribute: mappings can share a long one.
	buildIDs map[int32]uint64
}

const (
	minBytes     = 1 << 20
	maxExpansion = 64
)

// fits reports whether the budget allows n more bytes.
func (e *encoder) fits(n int) bool {
	total := e.written + int64(len(e.out)) + int64(n)
	if total > e.budget && !e.isSized {
		e.isSized = true
		e.budget += maxExpansion * int64((&pprofile.ProtoMarshaler{}).ProfilesSize(e.message))
	}
	return total <= e.budget
}

// fitsSample reports whether the budget allows one more sample of n bytes. It leaves an eighth of the budget for the
// tables that come after the samples.
func (e *encoder) fitsSample(n int) bool {
	return e.fits(n + int((e.written+int64(len(e.out)+n))/7))
}

var encoders = sync.Pool{New: func() any { return &encoder{buildIDs: map[int32]uint64{}} }}

func newEncoder(pd pprofile.Profiles) *encoder {
	e := encoders.Get().(*encoder)
	d := pd.Dictionary()
	e.message, e.dict, e.written, e.budget, e.isSized = pd, d, 0, minBytes, false
	e.stats, e.err = Stats{}, nil
	e.sets.Reset(0, 0)
	e.join.samples.Reset(0)
	e.strings.resize(d.StringTable())
	e.stacks.resize(d.StackTable().Len())
	e.attributes.resize(d.AttributeTable().Len())
	e.links.resize(d.LinkTable().Len())
	e.locations.resize(d.LocationTable().Len())
	e.functions.resize(d.FunctionTable().Len())
	e.mappings.resize(d.MappingTable().Len())
	return e
}

// release keeps the scratch memory for the next call, unless the input was uncommonly large.
func (e *encoder) release() {
	e.reset()
	e.message, e.dict, e.strings.table = pprofile.Profiles{}, pprofile.ProfilesDictionary{}, pcommon.StringSlice{}
	e.order, e.defaultType, e.reservedNames, e.origin = nil, "", nil, origin{}
	e.view, e.cpuTimes = View{}, nil
	if e.bytes() <= scan.MaxKeptBytes {
		encoders.Put(e)
	}
}

// bytes estimates the encoder's memory.
func (e *encoder) bytes() int {
	return dictionary.BytesOf(e.out) + dictionary.BytesOf(e.shared) + dictionary.BytesOf(e.values) + e.sets.MemoryBytes() +
		e.join.bytes() +
		e.strings.remap.bytes() + dictionary.BytesOf(e.strings.values) + e.stacks.bytes() + e.attributes.bytes() +
		e.links.bytes() +
		e.locations.bytes() + e.functions.bytes() + e.mappings.bytes()
}

func (e *encoder) reset() {
	e.out = e.out[:0]
	e.shared = e.shared[:0]
	e.strings.reset()
	e.stacks.reset()
	e.attributes.reset()
	e.links.reset()
	e.locations.reset()
	e.functions.reset()
	e.mappings.reset()
	e.buildIDs = cleared(e.buildIDs)
	e.reserved = cleared(e.reserved)
}

// encodeGroup returns the members of a group as one pprof, or nil if the budget does not allow it.
func (e *encoder) encodeGroup(scope pprofile.ScopeProfiles, members group) []byte {
	e.reset()
	before, samples := e.stats, 0
	e.origin = e.originOf(scope.Profiles().At(members.profiles[0]), members.profiles[0])
	columns := make([]column, len(members.profiles))
	for i, p := range members.profiles {
		profile := scope.Profiles().At(p)
		columns[i] = column{profile: p, samples: profile.Samples(), value: i % members.types}
		if e.view.States != nil {
			columns[i].states = e.view.States(profile)
		}
		samples = max(samples, profile.Samples().Len())
		if i < members.types {
			e.writeValueType(scan.ProfileSampleType, profile.SampleType(), p, "sample_type")
		}
	}
	columns, types := e.addCPUTime(columns, members.types)
	if !e.fits(0) {
		e.stats.Dropped += samples
		return nil
	}
	e.writeSamples(columns, types)
	e.writeLocations()
	e.writeFunctions()
	e.writeMappings()
	e.writeHeader(scope, members)
	e.writeStrings()
	isAllowed := e.fits(0)
	e.written += int64(len(e.out)) // even if it is dropped: it was work
	if !isAllowed {
		before.Dropped = e.stats.Dropped + e.stats.Samples - before.Samples
		e.stats = before
		return nil
	}
	return bytes.Clone(e.out)
}

// fail records that index is out of the range of a table of n entries, unless there is an error already.
func (e *encoder) fail(path string, index int32, n int) {
	e.failf("%s: index %d is out of range [0..%d)", path, index, n)
}

func (e *encoder) failf(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

func (e *encoder) profilePath(profile int) string {
	return fmt.Sprintf("resource_profiles[%d].scope_profiles[%d].profiles[%d]", e.resource, e.scope, profile)
}

func (e *encoder) samplePath(field string) string {
	return fmt.Sprintf("%s.samples[%d]%s", e.profilePath(e.profile), e.sample, field)
}

// entries calls use with the attributes at a record's indices, except for the null attribute at index 0.
func (e *encoder) entries(indices pcommon.Int32Slice, path func() string,
	use func(attribute int32, key string, v pcommon.Value)) {
	n := e.dict.AttributeTable().Len()
	for k := range indices.Len() {
		i := indices.At(k)
		if uint32(i) >= uint32(n) {
			e.fail(fmt.Sprintf("%s.attribute_indices[%d]", path(), k), i, n)
			return
		}
		attribute := e.dict.AttributeTable().At(int(i))
		if i == 0 && isNullAttribute(attribute) {
			continue
		}
		key, ok := e.strings.lookup(attribute.KeyStrindex())
		if !ok {
			e.fail(fmt.Sprintf("attribute_table[%d].key_strindex", i), attribute.KeyStrindex(), e.strings.table.Len())
			return
		}
		use(i, key, attribute.Value())
	}
}

func isNullAttribute(a pprofile.KeyValueAndUnit) bool {
	return a.KeyStrindex() == 0 && a.UnitStrindex() == 0 && a.Value().Type() == pcommon.ValueTypeEmpty
}
