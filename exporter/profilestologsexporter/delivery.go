// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"iter"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestologsexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	splunklog "github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
)

// part is the content of one request.
type part struct {
	// profiles, read-only, are sent as they are, or as the log records that were made of them.
	profiles pprofile.Profiles
	// asRecords reports that records are sent, not profiles.
	asRecords bool
	records   splunklog.EncodedPart
	// single reports that the part is not split any further: it is a single observation, smaller parts would repeat too
	// much of what its samples share, or it is an event most of which is its resource.
	single bool
}

// bytes is the size of the profiles or records.
func (p part) bytes() int {
	if p.asRecords {
		return p.records.RequestBytes()
	}
	return new(pprofile.ProtoMarshaler).ProfilesSize(p.profiles)
}

// rejectedSamples estimates how many samples the peer rejected. rejected is a number of profiles or records: the answer
// does not name them, so each counts as much as the others.
func (p part) rejectedSamples(rejected int64) int {
	if rejected <= 0 {
		return 0
	}
	items := p.records.Records
	if !p.asRecords {
		items = p.profiles.ProfileCount()
	}
	share := float64(rejected) / float64(max(items, 1))
	return int(math.Ceil(float64(p.profiles.SampleCount()) * min(share, 1)))
}

// parts are a batch, cut into requests.
type parts struct {
	// next makes the next part. All together can be much larger than the batch, so only one is in memory. It is called
	// until there are no more.
	next func() (part, bool)
	// rest returns the part that next returned last, and all after it, as one batch.
	rest func(from part) pprofile.Profiles
	// dropped is the number of samples that cannot be understood; profiles that are sent whole are not checked.
	dropped int
}

// maxGrowth bounds the size of all parts together, divided by that of the whole: each part repeats what its samples
// share. Beyond it, parts are larger than the limit, which the peer may refuse. With 8, that needs samples that share
// seven eighths of a request, one stack of 100,000 frames for example; and what a sender can make of a message stays
// small.
const maxGrowth = 8

// splitProfiles cuts profiles into parts of up to limit bytes. Each has all that its samples refer to.
func splitProfiles(pd pprofile.Profiles, limit int) (p parts) {
	all := func(yield func(part) bool) { yield(part{profiles: pd}) }
	if new(pprofile.ProtoMarshaler).ProfilesSize(pd) > limit {
		var batch compact.Batch
		batch.Reset(compact.Options{MaxBytes: limit, MaxGrowth: maxGrowth})
		batch.Add(pd)
		p.dropped = batch.Stats().DroppedSamples()
		all = func(yield func(part) bool) {
			for s := range batch.Parts() {
				if !yield(part{profiles: s.Profiles, single: s.Oversized}) {
					return
				}
			}
		}
	}
	p.next, _ = iter.Pull(all)
	p.rest = func(from part) pprofile.Profiles {
		next, ok := p.next()
		if !ok {
			return from.profiles
		}
		var batch compact.Batch // not that of the parts, which are still being made
		batch.Reset(compact.Options{})
		batch.Add(from.profiles)
		for ; ok; next, ok = p.next() {
			batch.Add(next.profiles)
		}
		return batch.Whole()
	}
	return p
}

// splitRecords makes a part of each part of an encoder.
func splitRecords(encoder *splunklog.Encoder) parts {
	return parts{
		next: func() (part, bool) {
			records, ok := encoder.Next()
			single := records.Samples < 2 || records.Records < 2 && records.RepeatedBytes > records.Bytes
			return part{profiles: records.Profiles, asRecords: true, records: records, single: single}, ok
		},
		rest:    func(from part) pprofile.Profiles { return encoder.Rest(from.records) },
		dropped: encoder.Dropped,
	}
}

// withoutPayloads returns a copy of profiles without their original payloads, and how many there were.
func withoutPayloads(pd pprofile.Profiles) (without pprofile.Profiles, payloads int) {
	without = pprofile.NewProfiles()
	pd.CopyTo(without)
	for p := range otlp.Profiles(without) {
		if p.OriginalPayload().Len() > 0 {
			payloads++
			p.OriginalPayload().FromRaw(nil)
			p.SetOriginalPayloadFormat("")
		}
	}
	return without, payloads
}

// newProbe returns a small profile in this version of OTLP, with entries in the tables that every sample needs.
func newProbe() pprofile.Profiles {
	var a compact.Assembler
	a.Reset()
	dict := a.Dictionary()
	function := dict.Functions.Intern(dictionary.Function{Name: dict.Strings.Intern("probe")})
	location := dict.Locations.Intern(dictionary.Location{}, []dictionary.Line{{Function: function}})
	resource, scope := pcommon.NewResource(), pcommon.NewInstrumentationScope()
	resource.Attributes().PutStr("service.name", "otelcol-profiles")
	scope.SetName(metadata.ScopeName)
	p := a.Profile(a.Scope(a.Resource(resource, ""), scope, ""), compact.Shape{Values: true}, compact.Header{
		SampleType: compact.ValueType{Type: dict.Strings.Intern("samples"), Unit: dict.Strings.Intern("count")},
	})
	stack := dict.Stacks.Intern([]int32{int32(location)})
	a.Observe(p, compact.Identity{Stack: stack}, compact.Observation{Value: 1})
	return a.Build()
}
