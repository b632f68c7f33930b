// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"cmp"
	"iter"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Part is profiles that are sent as one message.
type Part struct {
	Profiles pprofile.Profiles
	// ProfileCount and SampleCount are the numbers of profiles and samples in it.
	ProfileCount, SampleCount int
	// Bytes is the encoded size; 0 from Parts if Options.MaxBytes is 0. It is a few bytes too high, and up to five for
	// each string in the attributes of resources and scopes.
	Bytes int
	// Oversized reports that the part is larger than Options.MaxBytes: it is a single observation with everything that
	// this refers to, or smaller parts would repeat too much of what its samples share.
	Oversized bool
	// Entries is the number of entries in each table of the dictionary, in the order of Tables.
	Entries [len(Tables)]int
}

// sampleRange is a range of a profile's samples that goes into one part.
type sampleRange struct {
	profile int32
	// from and to bound the samples.
	from, to int32
	// The first sample begins with its observation skip; if end is not 0, the last sample ends before its observation
	// end.
	skip, end uint32
}

// isFirst reports whether the range is its profile's first, which carries the original payload.
func (p *sampleRange) isFirst(of *profile) bool { return p.from == of.first && p.skip == 0 }

// observations bounds the observations of sample i that are in the range.
func (p *sampleRange) observations(i int32, s *sample) (from, to uint32) {
	from, to = 0, s.Observed.count
	if i == p.from {
		from = p.skip
	}
	if i == p.to-1 && p.end != 0 {
		to = p.end
	}
	return from, to
}

// Parts returns everything in the batch, in as few and as even parts as Options.MaxBytes allows. An empty batch has no
// parts. The batch must not change during the iteration. Parts may be called again.
func (b *Batch) Parts() iter.Seq[Part] {
	return func(yield func(Part) bool) {
		if len(b.profiles) == 0 {
			return
		}
		if b.options.MaxBytes == 0 {
			yield(b.write(b.inOrder()))
			return
		}
		b.split(yield)
	}
}

// inOrder returns all profiles whole, in the order in which they were added, except that profiles of a scope and scopes
// of a resource are consecutive.
func (b *Batch) inOrder() []sampleRange {
	ranges := make([]sampleRange, len(b.profiles))
	for i := range b.profiles {
		p := &b.profiles[i]
		ranges[i] = sampleRange{profile: int32(i), from: p.first, to: p.first + p.count}
	}
	slices.SortFunc(ranges, b.compareOrder)
	return ranges
}

func (b *Batch) compareOrder(x, y sampleRange) int {
	s, t := b.profiles[x.profile].scope, b.profiles[y.profile].scope
	return cmp.Or(cmp.Compare(b.scopes.items[s].resource, b.scopes.items[t].resource),
		cmp.Compare(s, t), cmp.Compare(x.profile, y.profile))
}

// begins reports whether range k is the first of its resource and the first of its scope.
func (b *Batch) begins(ranges []sampleRange, k int) (resource, scope bool) {
	if k == 0 {
		return true, true
	}
	last, next := b.profiles[ranges[k-1].profile].scope, b.profiles[ranges[k].profile].scope
	return b.scopes.items[last].resource != b.scopes.items[next].resource, last != next
}

func (b *Batch) scopeOf(p *profile) *scope { return &b.scopes.items[p.scope] }

// Merge returns several messages as one of any size. It resets the batch, and only reads the messages.
func (b *Batch) Merge(messages []pprofile.Profiles) pprofile.Profiles {
	b.Reset(Options{})
	for _, pd := range messages {
		b.Add(pd)
	}
	return b.Whole()
}

// Whole returns everything as one message. Options.MaxBytes must be 0.
func (b *Batch) Whole() pprofile.Profiles {
	for part := range b.Parts() {
		return part.Profiles
	}
	return pprofile.NewProfiles()
}

// arrange makes b.subset the dictionary of the ranges.
func (b *Batch) arrange(ranges []sampleRange) {
	s := &b.subset
	s.reset(&b.dict)
	sets, links := s.tables[dictionary.SetTable].uses, s.tables[dictionary.LinkTable].uses
	for _, r := range ranges {
		p := &b.profiles[r.profile]
		sets[p.Attributes]++
		for _, t := range [...]ValueType{p.SampleType, p.PeriodType} {
			s.use(dictionary.StringTable, int32(t.Type))
			s.use(dictionary.StringTable, int32(t.Unit))
		}
		samples := b.samples.Entries[r.from:r.to]
		for i := range samples {
			s.use(dictionary.StackTable, int32(samples[i].Stack))
			sets[samples[i].Attributes]++
			links[samples[i].Link]++
		}
	}
	s.arrange(b.options.OrderByFrequency)
}

// write makes the message of the ranges.
func (b *Batch) write(ranges []sampleRange) Part {
	b.arrange(ranges)
	part := Part{Profiles: pprofile.NewProfiles(), ProfileCount: len(ranges), Entries: b.subset.entries()}
	var rp pprofile.ResourceProfiles
	var sp pprofile.ScopeProfiles
	for k, r := range ranges {
		p := &b.profiles[r.profile]
		newResource, newScope := b.begins(ranges, k)
		if newResource {
			rp = part.Profiles.ResourceProfiles().AppendEmpty()
			b.resources.items[b.scopeOf(p).resource].CopyTo(rp)
		}
		if newScope {
			sp = rp.ScopeProfiles().AppendEmpty()
			b.scopeOf(p).template.CopyTo(sp)
		}
		dst := sp.Profiles().AppendEmpty()
		p.copyTo(dst, &b.subset.Writer, r.isFirst(p))
		if r.from == p.first && r.to == p.first+p.count {
			p.donated.MoveAndAppendTo(dst.Samples())
		}
		b.writeSamples(r, p.shape, dst.Samples())
		part.SampleCount += int(r.to - r.from)
	}
	b.donated.MoveTo(part.Profiles.Dictionary())
	b.subset.Write(part.Profiles.Dictionary())
	return part
}

func (b *Batch) writeSamples(r sampleRange, shape Shape, dst pprofile.SampleSlice) {
	for k, entry := range dictionary.Resize(dst, int(r.to-r.from)) {
		i := r.from + int32(k)
		s := &b.samples.Entries[i]
		entry.SetStackIndex(b.subset.Index(dictionary.StackTable, int32(s.Stack)))
		entry.SetLinkIndex(b.subset.Index(dictionary.LinkTable, int32(s.Link)))
		b.subset.WriteAttributes(s.Attributes, entry.AttributeIndices())
		from, to := r.observations(i, s)
		var values []int64
		if shape.Values {
			values = b.values[s.Observed.firstValue+from : s.Observed.firstValue+to]
		}
		entry.Values().FromRaw(values)
		var timestamps []uint64
		if shape.Timestamps {
			timestamps = b.timestamps[s.Observed.firstTimestamp+from : s.Observed.firstTimestamp+to]
		}
		entry.TimestampsUnixNano().FromRaw(timestamps)
	}
}
