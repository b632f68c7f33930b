// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Options configure a batch.
type Options struct {
	// MaxBytes is the largest encoded size of a part, in bytes; 0 means no limit.
	MaxBytes int
	// MaxGrowth bounds the entries that parts repeat: all parts together are at most this many times as large as the
	// whole would be, and samples that share an entry larger than MaxBytes stay together. A part can then be larger than
	// MaxBytes. 0 means defaultMaxGrowth.
	MaxGrowth int
	// OrderByFrequency orders the entries of tables for compression: similar ones are neighbours, and the locations,
	// stacks, attributes and links with the most references have the shortest indices.
	OrderByFrequency bool
	// CombineSamples combines samples of a profile that have the same identity.
	CombineSamples bool
}

// defaultMaxGrowth is twice the whole: what a message has must not be sent many times.
const defaultMaxGrowth = 2

// Batch collects profiles. Reset must be called first. A Batch is not safe for concurrent use.
//
// Its tables are flat: samples of all profiles are in one slice, and refer to ranges of two others for their
// observations. It keeps the strings of added messages and, from messages passed to Consume, memory for the parts.
type Batch struct {
	options Options
	// messages is the number of messages added since Reset.
	messages int
	// grown is the final size of the last batch's dictionary, if that batch had several messages.
	grown dictionary.Sizes

	dict     dictionary.Dictionary
	importer Importer

	resources interned[pprofile.ResourceProfiles] // templates without scopes
	scopes    interned[scope]
	profiles  []profile

	samples    dictionary.Samples[observations]
	values     []int64
	timestamps []uint64

	// donated is the dictionary of the first consumed message, which that of the first part overwrites.
	donated pprofile.ProfilesDictionary

	// targets has, for each incoming sample with timestamps, the sample to which it was added, or unknown if it was
	// dropped.
	targets []int32
	stats   Stats
	// ownBytes is the encoded size of resources, scopes and payloads, and indices are the attribute indices of the samples
	// below measured.
	ownBytes, indices, measured int
	approximateBytes            int

	subset subset // the dictionary of a part
}

// Header has a profile's own fields. Its indices refer to the same dictionary as those of the profile's samples.
type Header struct {
	ID                     pprofile.ProfileID
	Time                   pcommon.Timestamp
	DurationNanos          uint64
	Period                 int64
	SampleType, PeriodType ValueType
	Attributes             dictionary.AttributeSetIndex
	DroppedAttributesCount uint32
	// The original payload and its format are both set, or neither. The payload is borrowed.
	PayloadFormat string
	Payload       []byte
}

// ValueType is a sample type or a period type.
type ValueType struct{ Type, Unit dictionary.StringIndex }

// profile is a profile's header and the range of its samples.
type profile struct {
	Header
	scope        int32
	shape        Shape
	first, count int32 // of samples

	// donated are the samples of a consumed message, which a part that has all samples of the profile overwrites.
	donated pprofile.SampleSlice
}

// Identity distinguishes the samples of a profile.
type Identity = dictionary.Identity

type sample = dictionary.Sample[observations]

// observations are the observations of a sample: depending on its profile's shape, count values from firstValue on,
// count timestamps from firstTimestamp on, or both.
type observations struct {
	firstValue, firstTimestamp uint32
	count                      uint32
}

// Reset empties the batch, but keeps its memory.
func (b *Batch) Reset(options Options) {
	b.options = options
	b.resources.reset()
	b.scopes.reset()
	clear(b.profiles)
	b.profiles = b.profiles[:0]
	b.samples.Reset(0)
	b.values, b.timestamps = b.values[:0], b.timestamps[:0]
	b.TakeStats()
	b.ownBytes, b.indices, b.measured, b.approximateBytes = 0, 0, 0, 0
	b.grown = dictionary.Sizes{}
	if b.messages > 1 {
		b.grown = b.dict.Sizes()
	}
	if b.messages > 0 { // the strings of the messages can be freed
		b.dict.Reset(dictionary.Sizes{})
		b.importer.Reset(&b.dict)
	}
	b.messages = 0
	b.donated = pprofile.NewProfilesDictionary()
}

// begin makes room for a dictionary like the last batch's or the first message's, so that it need not grow.
func (b *Batch) begin(d pprofile.ProfilesDictionary) {
	b.dict.Reset(dictionary.Sizes{
		Strings:   max(b.grown.Strings, d.StringTable().Len()),
		Functions: max(b.grown.Functions, d.FunctionTable().Len()),
		Locations: max(b.grown.Locations, d.LocationTable().Len()),
		Stacks:    max(b.grown.Stacks, d.StackTable().Len()),
	})
	b.importer.Reset(&b.dict)
}

// Profiles returns the number of profiles in the batch.
func (b *Batch) Profiles() int { return len(b.profiles) }

// Samples returns the number of samples in the batch.
func (b *Batch) Samples() int { return len(b.samples.Entries) }

// Stats returns the counts of what has been added since Reset, or since TakeStats.
func (b *Batch) Stats() Stats {
	s := b.stats
	s.Repairs = b.importer.Repairs
	return s
}

// TakeStats returns Stats and resets them.
func (b *Batch) TakeStats() Stats {
	s := b.Stats()
	b.stats = Stats{}
	b.importer.Repairs = [NumRepairs]int{}
	return s
}

// Add adds everything in pd that can be understood. It only reads pd.
func (b *Batch) Add(pd pprofile.Profiles) { b.add(pd, false) }

// Consume is Add for a message that the caller no longer needs: its memory is reused, unless it is read-only.
func (b *Batch) Consume(pd pprofile.Profiles) {
	consume := !pd.IsReadOnly()
	b.add(pd, consume)
	if consume && b.donated.StringTable().Len() == 0 {
		pd.Dictionary().MoveTo(b.donated)
	}
}

func (b *Batch) add(pd pprofile.Profiles, consume bool) {
	if b.messages == 0 {
		b.begin(pd.Dictionary())
	}
	b.messages++
	b.importer.Begin(pd.Dictionary())
	defer b.importer.End()
	for i, n := range EntriesOf(pd.Dictionary()) {
		b.stats.Entries[i] += n
	}
	b.reach(pd)
	resolved := ResolveReferences(pd)
	resources := pd.ResourceProfiles()
	for i := range resources.Len() {
		rp := resources.At(i)
		resource := int32(unknown)
		for j := range rp.ScopeProfiles().Len() {
			sp := rp.ScopeProfiles().At(j)
			if sp.Profiles().Len() == 0 {
				continue
			}
			attributes := resolved.ResourceProfiles().At(i)
			if resource == unknown {
				resource = b.resource(rp.Resource(), attributes.Resource().Attributes(), rp.SchemaUrl())
			}
			scope := b.scope(resource, sp.Scope(), attributes.ScopeProfiles().At(j).Scope().Attributes(), sp.SchemaUrl())
			for k := range sp.Profiles().Len() {
				b.addProfile(scope, sp.Profiles().At(k), consume)
			}
		}
	}
	b.estimate()
}

// reach imports all stacks that samples refer to.
func (b *Batch) reach(pd pprofile.Profiles) {
	for p := range otlp.Profiles(pd) {
		samples := p.Samples()
		for i := range samples.Len() {
			b.importer.Reach(samples.At(i).StackIndex())
		}
	}
	b.importer.ImportReached()
}

// unknown is an index that is not known yet.
const unknown = -1

func (b *Batch) addProfile(scope int32, src pprofile.Profile, consume bool) {
	b.stats.Profiles++
	b.stats.Samples += src.Samples().Len()
	p := profile{
		Header: Header{
			ID:                     src.ProfileID(),
			Time:                   src.Time(),
			DurationNanos:          src.DurationNano(),
			Period:                 src.Period(),
			SampleType:             b.valueType(src.SampleType()),
			PeriodType:             b.valueType(src.PeriodType()),
			Attributes:             b.importer.AttributeSet(src.AttributeIndices()),
			DroppedAttributesCount: src.DroppedAttributesCount(),
			PayloadFormat:          b.importer.CleanString(src.OriginalPayloadFormat()),
			Payload:                src.OriginalPayload().AsRaw(),
		},
		scope:   scope,
		donated: pprofile.NewSampleSlice(),
	}
	b.ownBytes += len(p.Payload)
	// A profile whose samples differ in shape becomes one profile for each shape.
	others := b.addSamples(p, src.Samples(), anyShape)
	p.PayloadFormat, p.Payload = "", nil
	for _, shape := range shapes {
		if slices.Contains(others, shape) {
			b.addSamples(p, src.Samples(), shape)
		}
	}
	if consume && len(others) == 0 {
		src.Samples().MoveAndAppendTo(b.profiles[len(b.profiles)-1].donated)
	}
}

func (b *Batch) valueType(src pprofile.ValueType) ValueType {
	return ValueType{Type: b.importer.Field(src.TypeStrindex()), Unit: b.importer.Field(src.UnitStrindex())}
}

// copyTo writes the profile's own fields. The payload goes with one part only.
func (p *Header) copyTo(dst pprofile.Profile, w *dictionary.Writer, withPayload bool) {
	dst.SetProfileID(p.ID)
	dst.SetTime(p.Time)
	dst.SetDurationNano(p.DurationNanos)
	dst.SetPeriod(p.Period)
	p.SampleType.copyTo(dst.SampleType(), w)
	p.PeriodType.copyTo(dst.PeriodType(), w)
	w.WriteAttributes(p.Attributes, dst.AttributeIndices())
	dst.SetDroppedAttributesCount(p.DroppedAttributesCount)
	if withPayload {
		dst.SetOriginalPayloadFormat(p.PayloadFormat)
		dst.OriginalPayload().FromRaw(p.Payload)
	}
}

func (t ValueType) copyTo(dst pprofile.ValueType, w *dictionary.Writer) {
	dst.SetTypeStrindex(w.Index(dictionary.StringTable, int32(t.Type)))
	dst.SetUnitStrindex(w.Index(dictionary.StringTable, int32(t.Unit)))
}
