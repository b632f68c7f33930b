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

// EncodeOptions configures how profiles become records.
type EncodeOptions struct {
	Format Format
	// MaxRecordBytes bounds the encoded size of a record, in bytes. 0 means no limit.
	MaxRecordBytes int
	// MaxPartBytes bounds the encoded size of all records of a part, in bytes. 0 means no limit. It has no effect below
	// MaxRecordBytes.
	MaxPartBytes int
	// RepeatsResources reports that each record is sent with its resource and scope, as an event of HEC is. MaxPartBytes
	// and the budget for what profiles may expand to then include them, once for each record. FormatOTLP ignores it.
	RepeatsResources bool
	// SplunkTypesOnly leaves out profiles whose type is neither cpu nor allocation. FormatOTLP ignores it.
	SplunkTypesOnly bool
}

// Encoder turns profiles into log records, part by part. It is not safe for concurrent use.
type Encoder struct {
	opts EncodeOptions
	// todo has the profiles that are not in a part yet, in reverse order.
	todo []unsent
	// Dropped is the number of samples that were dropped because they cannot be understood.
	Dropped int
	// budget is how many bytes of records, uncompressed, may still be written.
	budget int
}

// source is profiles that pieces are cut from, without duplicates and orphans.
type source struct {
	batch compact.Batch
	// bytes is the encoded size of all of them.
	bytes int
	// doubleCounted is what findDoubleCounted found, by the profiles' numbers in the batch.
	doubleCounted []bool
}

// unsent is profiles that are not in a part yet.
type unsent struct {
	*source
	compact.Piece
}

// isDoubleCounted returns source.doubleCounted of a profile by its position in the message.
func (u *unsent) isDoubleCounted(position int) bool { return u.doubleCounted[u.Profile(position)] }

// Profiles share stacks by index; pprof repeats the indices of a stack for each sample. What an Encoder writes is
// bounded by expansionConstantBytes + maxExpansion × the size of the profiles: samples beyond it are dropped. Splunk's
// agents stay far below: a sample of 100 frames is a time of 8 bytes in OTLP, and about 250 bytes as pprof.
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
	// LeftOutAttributes is the number of attributes whose names are the format's own, so that readers would take them for
	// something else.
	LeftOutAttributes int
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
	p.LeftOutAttributes += other.LeftOutAttributes
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
	opts.RepeatsResources = opts.RepeatsResources && opts.Format != FormatOTLP // a part of which has one record
	e := &Encoder{opts: opts}
	all := &source{}
	all.batch.Reset(compact.Options{})
	all.batch.Add(pd)
	e.Dropped = all.batch.Stats().DroppedSamples()
	if all.batch.Profiles() > 0 {
		e.todo = append(e.todo, unsent{all, all.batch.All()})
	}
	return e
}

func expansionBudget(profileBytes int) int { return expansionConstantBytes + maxExpansion*profileBytes }

// Next returns the next part, which has no records if all of it is left out. Profiles that are too large for a record
// or a part are split between observations.
func (e *Encoder) Next() (EncodedPart, bool) {
	for len(e.todo) > 0 {
		next := e.todo[len(e.todo)-1]
		e.todo = e.todo[:len(e.todo)-1]
		whole := next.batch.Part(next.Piece)
		whole.Profiles.MarkReadOnly() // otherwise the marshaler writes into it
		if next.bytes == 0 {          // this is all of it
			next.bytes, next.doubleCounted = whole.Bytes, make([]bool, next.Len())
			for position, found := range findDoubleCounted(whole.Profiles) {
				next.doubleCounted[next.Profile(position)] = found
			}
			e.budget = expansionBudget(whole.Bytes)
		}
		budget := e.budget
		encoded := e.encode(next, whole.Profiles)
		if e.split(next, whole, encoded) {
			e.budget = budget // the records are not sent
			continue
		}
		e.budget -= encoded.part.RepeatedBytes // now, since encode has only counted them
		return encoded.part, true
	}
	return EncodedPart{}, false
}

// split replaces profiles whose records are too large by pieces with an equal share of the observations each, unless
// there is a single one. whole is next as a message. If encode stopped, there are several observations, of which it has
// not written all.
func (e *Encoder) split(next unsent, whole compact.Part, encoded *sink) bool {
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
	excess := encoded.excess()
	if excess <= 1 || encoded.total < 2 {
		return false
	}
	if whole.Bytes < next.bytes/2 { // a piece takes time in proportion to its source
		smaller := &source{bytes: whole.Bytes}
		for position := range next.Len() {
			smaller.doubleCounted = append(smaller.doubleCounted, next.isDoubleCounted(position))
		}
		smaller.batch.Reset(compact.Options{})
		smaller.batch.Add(whole.Profiles)
		next = unsent{smaller, smaller.batch.All()}
	}
	repeatedBytes, profiles := 0, 0
	if e.opts.RepeatsResources {
		repeatedBytes, profiles = repeatedIn(whole.Profiles)
	}
	// A profile should not become several records if that does not make them smaller than those of whole profiles. These
	// are no more records, so what they share does not bound them.
	cutsProfiles := profiles > 1
	mustSplit := encoded.stopped || cutsProfiles
	for n := min(encoded.total, int(margin*excess)+1, maxPieces); n > 1; n /= 2 {
		if mustSplit {
			n = 2
		}
		pieces := next.batch.Cut(next.Piece, n, cutsProfiles)
		growth := -int(maxGrowth*float64(whole.Bytes)) - n*(fixedBytes+repeatedBytes)
		for i := 0; i < len(pieces) && growth <= 0 && !mustSplit; i++ {
			growth += next.batch.Part(pieces[i]).Bytes
		}
		if growth <= 0 {
			for _, piece := range slices.Backward(pieces) {
				e.todo = append(e.todo, unsent{next.source, piece})
			}
			return true
		}
	}
	return false
}

// repeatedIn returns the size of the resources and scopes, which each record repeats, and the number of profiles with
// samples.
func repeatedIn(pd pprofile.Profiles) (bytes, profiles int) {
	var sizer pprofile.ProtoMarshaler
	for _, rp := range pd.ResourceProfiles().All() {
		bytes += sizer.ResourceProfilesSize(rp)
	}
	for p := range otlp.Profiles(pd) {
		bytes -= sizer.ProfileSize(p)
		profiles += min(p.Samples().Len(), 1)
	}
	return bytes, profiles
}

// Rest returns all profiles from the part on, which Next returned last: those to send again if the part was not
// accepted.
func (e *Encoder) Rest(part EncodedPart) pprofile.Profiles {
	var batch compact.Batch
	batch.Reset(compact.Options{})
	batch.Add(part.Profiles)
	for _, next := range slices.Backward(e.todo) {
		batch.Add(next.batch.Part(next.Piece).Profiles)
	}
	return batch.Whole()
}

// encode makes records of conformant profiles, until these are far too large. pd is from as a message.
func (e *Encoder) encode(from unsent, pd pprofile.Profiles) *sink {
	s := &sink{
		Encoder: e, from: from, part: EncodedPart{Profiles: pd, Logs: plog.NewLogs()}, dict: pd.Dictionary(),
		total: observations(pd), hasUnnamed: hasUnnamedFunctions(pd.Dictionary()),
	}
	if e.opts.Format == FormatPprof {
		s.pprof = encode.NewWriter(pd, keyEventTime, KeyEventTimeNanos, keyEventPeriod, keyEventPeriodNanos)
		defer s.pprof.Close()
	}
	if e.opts.Format == FormatOTLP {
		s.addOTLP(pd)
	} else {
		s.addProfiles(pd)
	}
	if s.pprof != nil {
		s.part.LeftOutAttributes += s.pprof.LeftOut()
	}
	return s
}

// observations counts the observations of pd: a sample has one for each timestamp.
func observations(pd pprofile.Profiles) int {
	n := 0
	for p := range otlp.Profiles(pd) {
		n += observationsOf(p)
	}
	return n
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
