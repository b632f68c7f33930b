// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
)

// BodyFormat is how an Encoder writes the bodies of records. Its String is its name in configurations and metrics.
type BodyFormat uint8

// The formats of bodies.
const (
	// BodyPprof is Splunk's pprof-gzip-base64.
	BodyPprof BodyFormat = iota
	// BodyText is Splunk's older text: one stack a record.
	BodyText
	// BodyOTLP is the serialized ProfilesData, compressed with zstd.
	BodyOTLP
)

func (f BodyFormat) String() string { return [...]string{"pprof", "text", "otlp"}[f] }

// EncodeOptions configures how profiles become records.
type EncodeOptions struct {
	Format BodyFormat
	// MaxRecordBytes bounds the encoded size of a record, in bytes. 0 means no limit.
	MaxRecordBytes int
	// MaxPartBytes bounds the encoded size of all records of a part, in bytes. 0 means no limit. It has no effect below
	// MaxRecordBytes.
	MaxPartBytes int
	// RepeatsResources reports that each record is sent with its resource and scope, as an event of HEC is. MaxPartBytes and the
	// budget for what profiles may expand to then include them, once for each record. BodyOTLP ignores it.
	RepeatsResources bool
	// SplunkTypesOnly leaves out profiles whose type is neither cpu nor allocation. BodyOTLP ignores it.
	SplunkTypesOnly bool
}

// Encoder turns profiles into log records, part by part. It is not safe for concurrent use.
type Encoder struct {
	opts EncodeOptions
	// todo has the profiles that are not in a part yet, in reverse order.
	todo []unsent
	// batch splits and merges profiles.
	batch    compact.Batch
	recounts recounts
	text     []byte // scratch of sink
	// Dropped is the number of samples that were dropped because they cannot be understood.
	Dropped int
	// budget is how many bytes of records, uncompressed, may still be written, of wholeBudget at first.
	budget, wholeBudget int
}

// unsent is profiles that are not in a part yet. If shared is set, that is their dictionary, and their size is not known.
type unsent struct {
	compact.Part
	shared *shared
}

// shared is the dictionary of profiles of so many bytes, and of pieces of them. Pieces that need most of it have none of their
// own while they wait: there would be one for each level of the halving.
type shared struct {
	dictionary pprofile.ProfilesDictionary
	bytes      int
}

// whole calls use with the profiles and their dictionary, which it only reads.
func (u unsent) whole(use func(pprofile.Profiles)) {
	if u.shared != nil {
		u.shared.dictionary.MoveTo(u.Profiles.Dictionary())
		defer u.Profiles.Dictionary().MoveTo(u.shared.dictionary)
	}
	use(u.Profiles)
}

// Profiles share stacks and attributes by index; texts repeat them for each sample, and pprof repeats the indices of a
// stack. What an Encoder writes is bounded by expansionConstantBytes + maxExpansion × the size of the profiles.
// Beyond it, texts are written as pprof, with a budget of its own, and samples of a pprof are dropped. Splunk's agents stay far below: a sample
// of 100 frames is a time of 8 bytes in OTLP, about 250 bytes as pprof and 10,000 as text.
const (
	expansionConstantBytes = 16 << 20
	maxExpansion           = 256
	// maxPprofBytes is the largest uncompressed pprof: a larger one is split.
	maxPprofBytes = 16 << 20
)

// EncodedPart has the records of one request.
type EncodedPart struct {
	// Profiles, read-only, are what the records were made of.
	Profiles pprofile.Profiles
	Logs     plog.Logs
	// Records and Bytes are the number and encoded size of the records, Samples the number of observations in them.
	// RepeatedBytes is the size of their resources and scopes if EncodeOptions.RepeatsResources, otherwise 0.
	Records, Bytes, RepeatedBytes, Samples int
	// Oversized is the number of records above MaxRecordBytes: they have a single observation, or observations that
	// share so much that splitting would only make many of the same size.
	Oversized int
	// LeftOut is the number of observations of types that SplunkTypesOnly leaves out, Dropped that of observations
	// beyond the budget for what profiles may expand to.
	LeftOut, Dropped int
}

// RequestBytes is the size that EncodeOptions.MaxPartBytes bounds.
func (p *EncodedPart) RequestBytes() int { return p.Bytes + p.RepeatedBytes }

// Add adds the records of another part. Profiles stay as they are.
func (p *EncodedPart) Add(other EncodedPart) {
	other.Logs.ResourceLogs().MoveAndAppendTo(p.Logs.ResourceLogs())
	p.Records += other.Records
	p.Bytes += other.Bytes
	p.RepeatedBytes += other.RepeatedBytes
	p.Samples += other.Samples
	p.Oversized += other.Oversized
	p.LeftOut += other.LeftOut
	p.Dropped += other.Dropped
}

// NewEncoder returns an encoder of pd, which may be malformed. It only reads pd, and keeps nothing of it but strings.
func NewEncoder(pd pprofile.Profiles, opts EncodeOptions) *Encoder {
	if opts.MaxRecordBytes <= 0 {
		opts.MaxRecordBytes = math.MaxInt
	}
	if opts.MaxPartBytes <= 0 {
		opts.MaxPartBytes = math.MaxInt
	}
	opts.MaxPartBytes = max(opts.MaxPartBytes, opts.MaxRecordBytes)
	opts.RepeatsResources = opts.RepeatsResources && opts.Format != BodyOTLP // a part of which has one record
	e := &Encoder{opts: opts}
	whole := e.compacted(unsent{Part: compact.Part{Profiles: pd}})
	for _, n := range e.batch.Stats().Dropped {
		e.Dropped += n
	}
	if observations(whole.Profiles) > 0 || whole.Bytes > 0 {
		e.todo = append(e.todo, unsent{Part: whole})
	}
	e.recounts = findRecounts(whole.Profiles)
	e.wholeBudget = expansionBudget(whole.Bytes)
	e.budget = e.wholeBudget
	return e
}

func expansionBudget(profileBytes int) int { return expansionConstantBytes + maxExpansion*profileBytes }

// Next returns the next part, which has no records if all of it is left out. Profiles that are too large for a record
// or a part are split between observations.
func (e *Encoder) Next() (EncodedPart, bool) {
	for len(e.todo) > 0 {
		next := e.todo[len(e.todo)-1]
		e.todo = e.todo[:len(e.todo)-1]
		whole := next.Part
		if next.shared != nil {
			whole = e.compacted(next)
		}
		budget := e.budget
		part, excess, stopped := e.encode(whole.Profiles)
		if e.budget <= 0 && e.opts.Format == BodyText {
			e.opts.Format, e.budget = BodyPprof, e.wholeBudget
			budget = e.budget
			part, excess, stopped = e.encode(whole.Profiles)
		}
		if excess > 1 && e.split(next, whole, excess, stopped) {
			e.budget = budget // the records are not sent
			continue
		}
		part.Profiles = whole.Profiles
		e.budget -= part.RepeatedBytes // now, since encode has only counted them
		return part, true
	}
	return EncodedPart{}, false
}

// split replaces profiles by pieces with an equal share of the observations each, unless there is a single one. whole is
// next with its own dictionary. excess is the size of the records of the whole, divided by the limit. mustSplit reports that
// encode stopped: then there are several observations, of which it has not written all.
func (e *Encoder) split(next unsent, whole compact.Part, excess float64, mustSplit bool) bool {
	const (
		margin = 1.05
		// maxPieces bounds the passes over a dictionary: pieces that are still too large are split again.
		maxPieces = 16
		// maxGrowth bounds the size of all pieces together, divided by that of the whole: each repeats what its samples
		// share. Beyond it, splitting makes more records, but hardly smaller ones.
		maxGrowth = 1.8
		// fixedBytes of a piece do not count as growth: resource, scope, type.
		fixedBytes = 512
	)
	repeatedBytes := e.repeatedBytes(whole.Profiles)
	n := observations(whole.Profiles)
	if n < 2 {
		return false
	}
	mustSplit = mustSplit || e.cutsProfiles(whole.Profiles)
	if next.shared == nil || whole.Bytes < next.shared.bytes/2 {
		next = unsent{whole, &shared{pprofile.NewProfiles().Dictionary(), whole.Bytes}}
		whole.Profiles.Dictionary().CopyTo(next.shared.dictionary)
	}
	for pieces := min(n, int(margin*excess)+1, maxPieces); pieces > 1; pieces /= 2 {
		maxBytes := int(maxGrowth*float64(whole.Bytes)) + pieces*(fixedBytes+repeatedBytes)
		if mustSplit {
			pieces, maxBytes = 2, math.MaxInt
		}
		first := len(e.todo)
		for i := range pieces {
			piece := unsent{compact.Part{Profiles: e.piece(next.Profiles, i, pieces)}, next.shared}
			if !mustSplit {
				part := e.compacted(piece)
				if maxBytes -= part.Bytes; maxBytes < 0 {
					break
				}
				if part.Bytes < piece.shared.bytes/2 {
					piece = unsent{Part: part}
				}
			}
			e.todo = append(e.todo, piece)
		}
		if maxBytes >= 0 {
			slices.Reverse(e.todo[first:])
			return true
		}
		clear(e.todo[first:])
		e.todo = e.todo[:first]
	}
	return false
}

// repeatedBytes is the size of the resources and scopes if each record repeats them, so that pieces cost no more.
func (e *Encoder) repeatedBytes(pd pprofile.Profiles) (n int) {
	if !e.opts.RepeatsResources {
		return 0
	}
	var sizer pprofile.ProtoMarshaler
	for _, rp := range pd.ResourceProfiles().All() {
		n += sizer.ResourceProfilesSize(rp)
	}
	for p := range otlp.Profiles(pd) {
		n -= sizer.ProfileSize(p)
	}
	return n
}

// cutsProfiles reports that pieces have whole profiles: if records repeat their resources, a profile should not become several
// records if that does not make them smaller. This adds no records, so it is not bounded by what the pieces share.
func (e *Encoder) cutsProfiles(pd pprofile.Profiles) bool {
	return e.opts.RepeatsResources && pd.ProfileCount() > 1
}

// piece returns piece i of n of profiles, without their dictionary. If all profiles are large enough it has the same share of
// each, since the sample types of one pprof have the same stacks in the same order.
func (e *Encoder) piece(whole pprofile.Profiles, i, n int) pprofile.Profiles {
	part := pprofile.NewProfiles()
	smallest, total := smallestProfile(whole)
	wholly, profiles, k := e.cutsProfiles(whole), whole.ProfileCount(), 0
	at := 0
	for _, rp := range whole.ResourceProfiles().All() {
		toResource := part.ResourceProfiles().AppendEmpty()
		rp.Resource().CopyTo(toResource.Resource())
		toResource.SetSchemaUrl(rp.SchemaUrl())
		for _, sp := range rp.ScopeProfiles().All() {
			toScope := toResource.ScopeProfiles().AppendEmpty()
			sp.Scope().CopyTo(toScope.Scope())
			toScope.SetSchemaUrl(sp.SchemaUrl())
			for _, p := range sp.Profiles().All() {
				count := observationsOf(p)
				from, to := total*i/n-at, total*(i+1)/n-at
				switch {
				case wholly && k*n/profiles != i:
					from, to = 0, 0
				case wholly:
					from, to = 0, count
				case smallest >= n:
					from, to = count*i/n, count*(i+1)/n
				}
				k++
				if from < count && to > 0 {
					copyObservations(p, toScope.Profiles().AppendEmpty(), from, to)
				}
				at += count
			}
		}
	}
	part.ResourceProfiles().RemoveIf(func(rp pprofile.ResourceProfiles) bool {
		rp.ScopeProfiles().RemoveIf(func(sp pprofile.ScopeProfiles) bool { return sp.Profiles().Len() == 0 })
		return rp.ScopeProfiles().Len() == 0
	})
	return part
}

// smallestProfile returns the number of observations in the smallest profile, and in all.
func smallestProfile(pd pprofile.Profiles) (smallest, total int) {
	smallest = math.MaxInt
	for p := range otlp.Profiles(pd) {
		n := observationsOf(p)
		smallest = min(smallest, n)
		total += n
	}
	return smallest, total
}

// copyObservations copies a profile with those of its observations that lie in [from, to).
func copyObservations(p, dst pprofile.Profile, from, to int) {
	p.SampleType().CopyTo(dst.SampleType())
	p.PeriodType().CopyTo(dst.PeriodType())
	dst.SetPeriod(p.Period())
	dst.SetTime(p.Time())
	dst.SetDurationNano(p.DurationNano())
	dst.SetProfileID(p.ProfileID())
	dst.SetDroppedAttributesCount(p.DroppedAttributesCount())
	p.AttributeIndices().CopyTo(dst.AttributeIndices())
	if from <= 0 { // the payload goes with the first samples
		dst.SetOriginalPayloadFormat(p.OriginalPayloadFormat())
		p.OriginalPayload().CopyTo(dst.OriginalPayload())
	}
	at := 0
	for _, sample := range p.Samples().All() {
		n := observationsIn(sample)
		first, end := max(from-at, 0), min(to-at, n)
		at += n
		if first >= end {
			continue
		}
		s := dst.Samples().AppendEmpty()
		s.SetStackIndex(sample.StackIndex())
		s.SetLinkIndex(sample.LinkIndex())
		sample.AttributeIndices().CopyTo(s.AttributeIndices())
		for i := first; i < end; i++ {
			if i < sample.TimestampsUnixNano().Len() {
				s.TimestampsUnixNano().Append(sample.TimestampsUnixNano().At(i))
			}
			if i < sample.Values().Len() {
				s.Values().Append(sample.Values().At(i))
			}
		}
	}
}

// compacted returns profiles, which may be malformed, in their smallest form.
func (e *Encoder) compacted(profiles unsent) compact.Part {
	e.batch.Reset(compact.Options{MaxBytes: math.MaxInt}) // so that parts come with their size
	profiles.whole(e.batch.Add)
	for part := range e.batch.Parts() {
		part.Profiles.MarkReadOnly() // otherwise the marshaler writes into them
		return part
	}
	return compact.Part{Profiles: pprofile.NewProfiles()}
}

// Rest returns all profiles from the part on, which Next returned last: those to send again if the part was not
// accepted.
func (e *Encoder) Rest(part EncodedPart) pprofile.Profiles {
	e.batch.Reset(compact.Options{})
	e.batch.Add(part.Profiles)
	for _, next := range slices.Backward(e.todo) {
		next.whole(e.batch.Add)
	}
	return e.batch.Whole()
}

// encode makes records of conformant profiles. excess is their size divided by the limit. When they are far too large,
// encode stops.
func (e *Encoder) encode(pd pprofile.Profiles) (part EncodedPart, excess float64, stopped bool) {
	s := &sink{
		opts: e.opts, budget: &e.budget, part: &part, dict: pd.Dictionary(), recounts: &e.recounts,
		text: e.text, total: observations(pd), hasUnnamed: hasUnnamedFunctions(pd.Dictionary()),
	}
	if e.opts.Format == BodyPprof {
		s.pprof = encode.NewWriter(pd)
		defer s.pprof.Close()
	}
	part.Logs = plog.NewLogs()
	if e.opts.Format == BodyOTLP {
		s.addOTLP(pd)
	} else {
		s.addProfiles(pd)
	}
	e.text = s.text
	return part, s.excess(), s.stopped
}

// observations counts the observations of pd: a sample has one for each timestamp.
func observations(pd pprofile.Profiles) int {
	_, total := smallestProfile(pd)
	return total
}

func observationsOf(p pprofile.Profile) int {
	n := 0
	for _, sample := range p.Samples().All() {
		n += observationsIn(sample)
	}
	return n
}

func observationsIn(sample pprofile.Sample) int {
	return max(sample.Values().Len(), sample.TimestampsUnixNano().Len())
}
