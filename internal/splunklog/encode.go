// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
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

// EncodeOptions says how profiles become records.
type EncodeOptions struct {
	Format BodyFormat
	// MaxRecordBytes bounds the encoded size of a record, in bytes. 0 is no limit.
	MaxRecordBytes int
	// MaxPartBytes bounds the encoded size of all records of a part, in bytes. 0 is no limit. It is no less than
	// MaxRecordBytes in effect.
	MaxPartBytes int
	// SplunkTypesOnly leaves out profiles whose type is neither like cpu nor like allocation. BodyOTLP takes no notice.
	SplunkTypesOnly bool
}

// Encoder turns profiles into log records, part by part. It is not safe for concurrent use.
type Encoder struct {
	opts EncodeOptions
	// todo are the profiles of which no part was given yet, the next one last.
	todo []sized
	// batch takes profiles apart and puts them together.
	batch   compact.Batch
	doubles doubles
	// Dropped is the number of samples that were left out since they cannot be understood.
	Dropped int
}

// sized is profiles and their encoded size in bytes.
type sized struct {
	profiles pprofile.Profiles
	bytes    int
}

// EncodedPart is records to be sent as one request.
type EncodedPart struct {
	// Profiles, read-only, are what the records were made of.
	Profiles pprofile.Profiles
	Logs     plog.Logs
	// Records and Bytes are the number and encoded size of the records, Samples the number of observations in them.
	Records, Bytes, Samples int
	// Oversized is the number of records above MaxRecordBytes: each carries a single observation.
	Oversized int
	// LeftOut is the number of observations of types that SplunkTypesOnly leaves out.
	LeftOut int
}

// Add takes the records of another part. Profiles stay as they are.
func (p *EncodedPart) Add(other EncodedPart) {
	other.Logs.ResourceLogs().MoveAndAppendTo(p.Logs.ResourceLogs())
	p.Records += other.Records
	p.Bytes += other.Bytes
	p.Samples += other.Samples
	p.Oversized += other.Oversized
	p.LeftOut += other.LeftOut
}

// NewEncoder begins to turn pd, of any quality, into records. It only reads pd, and keeps nothing of it but strings.
func NewEncoder(pd pprofile.Profiles, opts EncodeOptions) *Encoder {
	if opts.MaxRecordBytes <= 0 {
		opts.MaxRecordBytes = math.MaxInt
	}
	if opts.MaxPartBytes <= 0 {
		opts.MaxPartBytes = math.MaxInt
	}
	opts.MaxPartBytes = max(opts.MaxPartBytes, opts.MaxRecordBytes)
	e := &Encoder{opts: opts}
	e.push(pd, math.MaxInt)
	for _, n := range e.batch.Stats().Dropped {
		e.Dropped += n
	}
	for _, whole := range e.todo {
		e.doubles = findDoubles(whole.profiles)
	}
	return e
}

// push puts pd in front of what is to be done, in parts of up to maxBytes, and gives their number.
func (e *Encoder) push(pd pprofile.Profiles, maxBytes int) int {
	e.batch.Reset(compact.Options{MaxBytes: maxBytes})
	e.batch.Add(pd)
	first := len(e.todo)
	for part := range e.batch.Parts() {
		part.Profiles.MarkReadOnly()
		e.todo = append(e.todo, sized{part.Profiles, part.Bytes})
	}
	slices.Reverse(e.todo[first:])
	return len(e.todo) - first
}

// Next gives the next part, which may be without records where all of it is left out. Profiles that give too much for
// a record or a part are split between samples.
func (e *Encoder) Next() (EncodedPart, bool) {
	for len(e.todo) > 0 {
		next := e.todo[len(e.todo)-1]
		e.todo = e.todo[:len(e.todo)-1]
		part, excess := e.encode(next.profiles)
		if excess > 1 && e.split(next, excess) {
			continue
		}
		part.Profiles = next.profiles
		return part, true
	}
	return EncodedPart{}, false
}

// split puts profiles that are too large by excess in front as several parts, unless they are a single observation.
// Sizes do not shrink in proportion, since each part repeats what its samples share: a part may come here again.
func (e *Encoder) split(whole sized, excess float64) bool {
	if observations(whole.profiles) < 2 {
		return false
	}
	const margin = 1.05
	for limit := int(float64(whole.bytes) / (margin * excess)); limit > 0; limit = limit * 3 / 4 {
		if e.push(whole.profiles, limit) > 1 {
			return true
		}
		// Laid out anew all of it fits into less.
		e.todo = e.todo[:len(e.todo)-1]
	}
	return false
}

// Rest gives all profiles from the part on, the last that Next gave: what is to be sent again where it was not taken.
func (e *Encoder) Rest(part EncodedPart) pprofile.Profiles {
	messages := []pprofile.Profiles{part.Profiles}
	for _, next := range slices.Backward(e.todo) {
		messages = append(messages, next.profiles)
	}
	return e.batch.Merge(messages)
}

// encode makes records of conformant profiles. excess is by how much they go beyond a limit, where above 1.
func (e *Encoder) encode(pd pprofile.Profiles) (part EncodedPart, excess float64) {
	s := &sink{opts: e.opts, part: &part, dict: pd.Dictionary(), doubles: e.doubles, total: observations(pd)}
	part.Logs = plog.NewLogs()
	if e.opts.Format == BodyOTLP {
		s.addOTLP(pd)
	} else {
		s.addProfiles(pd)
	}
	return part, s.excess()
}

// observations counts what the samples of pd saw: a sample of several timestamps is as many.
func observations(pd pprofile.Profiles) int {
	n := 0
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				n += observationsOf(p)
			}
		}
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
