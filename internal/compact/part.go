// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"cmp"
	"iter"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// Part is profiles to be sent as one message.
type Part struct {
	Profiles pprofile.Profiles
	// ProfileCount and SampleCount are the numbers of profiles and samples in it.
	ProfileCount, SampleCount int
	// Bytes is the encoded size, at most a few bytes too high; 0 where Options.MaxBytes is.
	Bytes int
	// Oversized reports that the part is larger than Options.MaxBytes: it is a single observation with what that
	// must carry, or smaller parts would repeat too much of what its samples share.
	Oversized bool
	// Entries counts the dictionary's entries by table, in the order of Tables.
	Entries [len(Tables)]int
}

// piece is a run of a profile's samples that goes into one part.
type piece struct {
	profile int32
	// from and to bound the samples.
	from, to int32
	// The first sample begins with its observation skip; of the last sample the observations from end on are
	// left out, where end is not 0.
	skip, end uint32
}

// isFirst reports whether the piece is its profile's first, which carries the original payload.
func (p *piece) isFirst(of *profile) bool { return p.from == of.first && p.skip == 0 }

// observations bounds the observations of sample i that are in the piece.
func (p *piece) observations(i int32, s *sample) (from, to uint32) {
	from, to = 0, s.count
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
		all := b.inOrder()
		b.arrange(all)
		limit := b.options.MaxBytes
		if limit == 0 {
			yield(b.write(all))
			return
		}
		size := b.sizeOf(all)
		if size <= limit {
			yield(b.measured(all, size))
			return
		}
		for _, pieces := range b.split(all, size) {
			b.arrange(pieces)
			if !yield(b.measured(pieces, b.sizeOf(pieces))) {
				return
			}
		}
	}
}

// inOrder returns all profiles whole: those of a scope together, scopes of a resource together, else as they came.
func (b *Batch) inOrder() []piece {
	pieces := make([]piece, len(b.profiles))
	for i := range b.profiles {
		p := &b.profiles[i]
		pieces[i] = piece{profile: int32(i), from: p.first, to: p.first + p.count}
	}
	slices.SortFunc(pieces, b.compareOrder)
	return pieces
}

func (b *Batch) compareOrder(x, y piece) int {
	s, t := b.profiles[x.profile].scope, b.profiles[y.profile].scope
	return cmp.Or(cmp.Compare(b.scopes.items[s].resource, b.scopes.items[t].resource),
		cmp.Compare(s, t), cmp.Compare(x.profile, y.profile))
}

// Merge returns several messages as one, however large. It resets the batch, and only reads the messages.
func (b *Batch) Merge(messages []pprofile.Profiles) pprofile.Profiles {
	b.Reset(Options{})
	for _, pd := range messages {
		b.Add(pd)
	}
	for whole := range b.Parts() {
		return whole.Profiles
	}
	return pprofile.NewProfiles()
}

// measured writes pieces whose size is known.
func (b *Batch) measured(pieces []piece, size int) Part {
	part := b.write(pieces)
	part.Bytes = size
	part.Oversized = size > b.options.MaxBytes
	return part
}

// arrange makes b.subset the dictionary of the pieces.
func (b *Batch) arrange(pieces []piece) {
	b.subset.Reset(&b.dict)
	for _, piece := range pieces {
		p := &b.profiles[piece.profile]
		b.subset.UseString(p.SampleType.Type)
		b.subset.UseString(p.SampleType.Unit)
		b.subset.UseString(p.PeriodType.Type)
		b.subset.UseString(p.PeriodType.Unit)
		b.subset.UseAttributes(p.Attributes)
		samples := b.samples[piece.from:piece.to]
		for i := range samples {
			s := &samples[i]
			b.subset.UseStack(s.Stack)
			b.subset.UseAttributes(s.Attributes)
			b.subset.UseLink(s.Link)
		}
	}
	b.subset.Arrange(b.options.OrderByFrequency)
}

// write makes the message of the pieces, whose dictionary is b.subset.
func (b *Batch) write(pieces []piece) Part {
	part := Part{Profiles: pprofile.NewProfiles(), ProfileCount: len(pieces), Entries: b.subset.Entries()}
	resource, scope := int32(unknown), int32(unknown)
	var rp pprofile.ResourceProfiles
	var sp pprofile.ScopeProfiles
	for _, piece := range pieces {
		p := &b.profiles[piece.profile]
		if p.scope != scope {
			scope = p.scope
			if of := b.scopes.items[scope].resource; of != resource {
				resource = of
				rp = part.Profiles.ResourceProfiles().AppendEmpty()
				b.resources.items[resource].template.CopyTo(rp)
			}
			sp = rp.ScopeProfiles().AppendEmpty()
			b.scopes.items[scope].template.CopyTo(sp)
		}
		dst := sp.Profiles().AppendEmpty()
		p.copyTo(dst, &b.subset, piece.isFirst(p))
		if piece.from == p.first && piece.to == p.first+p.count {
			p.donated.MoveAndAppendTo(dst.Samples())
		}
		b.writeSamples(piece, p.shape, dst.Samples())
		part.SampleCount += int(piece.to - piece.from)
	}
	b.donated.MoveTo(part.Profiles.Dictionary())
	if b.isUnsized && b.subset.isWhole() { // Fast path for assembled messages, which mostly are
		b.dict.CopyTo(part.Profiles.Dictionary())
	} else {
		b.subset.CopyTo(part.Profiles.Dictionary())
	}
	return part
}

func (b *Batch) writeSamples(piece piece, shape shape, dst pprofile.SampleSlice) {
	resize(dst, int(piece.to-piece.from))
	for i := piece.from; i < piece.to; i++ {
		s := &b.samples[i]
		entry := dst.At(int(i - piece.from))
		entry.SetStackIndex(b.subset.Stack(s.Stack))
		entry.SetLinkIndex(b.subset.Link(s.Link))
		b.subset.CopyAttributes(s.Attributes, entry.AttributeIndices())
		from, to := piece.observations(i, s)
		var values []int64
		if shape != timestampsAlone {
			values = b.values[s.firstValue+from : s.firstValue+to]
		}
		entry.Values().FromRaw(values)
		var timestamps []uint64
		if shape != valuesAlone {
			timestamps = b.timestamps[s.firstTimestamp+from : s.firstTimestamp+to]
		}
		entry.TimestampsUnixNano().FromRaw(timestamps)
	}
}

// sizeOf is the encoded size of the pieces, whose dictionary is b.subset, in the larger of the two forms.
func (b *Batch) sizeOf(pieces []piece) int {
	var inPlace, referenced tree
	width := b.referenceWidth(pieces)
	resource, scope := int32(unknown), int32(unknown)
	for _, piece := range pieces {
		p := &b.profiles[piece.profile]
		if p.scope != scope {
			scope = p.scope
			inPlace.endScope()
			referenced.endScope()
			if of := b.scopes.items[scope].resource; of != resource {
				resource = of
				inPlace.endResource()
				referenced.endResource()
				size := &b.resources.items[resource].size
				inPlace.resource = size.inPlace
				referenced.resource = size.withReferences(width)
			}
			size := &b.scopes.items[scope].size
			inPlace.scope = size.inPlace
			referenced.scope = size.withReferences(width)
		}
		n := p.headerLen(&b.subset)
		if piece.isFirst(p) {
			n += p.payloadLen()
		}
		for i := piece.from; i < piece.to; i++ {
			s := &b.samples[i]
			from, to := piece.observations(i, s)
			n += b.sampleLen(s, p.shape, from, to, &b.subset)
		}
		inPlace.scope += profiledict.FieldLen(n)
		referenced.scope += profiledict.FieldLen(n)
	}
	dict := b.subset.Size()
	return max(inPlace.end(dict), referenced.end(dict+b.textBytes))
}

// tree adds up the sizes of nested messages from the outside in.
type tree struct{ total, resource, scope int }

func (t *tree) endScope() {
	if t.scope > 0 {
		t.resource += profiledict.FieldLen(t.scope)
		t.scope = 0
	}
}

func (t *tree) endResource() {
	t.endScope()
	if t.resource > 0 {
		t.total += profiledict.FieldLen(t.resource)
		t.resource = 0
	}
}

func (t *tree) end(dictionary int) int {
	t.endResource()
	return t.total + profiledict.FieldLen(dictionary)
}

// referenceWidth returns the bytes that a reference from a resource or scope into the string table takes
// at most, and leaves in b.textBytes what the texts would add to that table.
func (b *Batch) referenceWidth(pieces []piece) int {
	clear(b.texts)
	b.textBytes = 0
	resource, scope := int32(unknown), int32(unknown)
	for _, piece := range pieces {
		if next := b.profiles[piece.profile].scope; next != scope {
			scope = next
			b.addTexts(b.scopes.items[scope].size.texts)
			if of := b.scopes.items[scope].resource; of != resource {
				resource = of
				b.addTexts(b.resources.items[resource].size.texts)
			}
		}
	}
	return profiledict.VarintLen(uint64(b.subset.Strings() + len(b.texts)))
}

func (b *Batch) addTexts(texts []string) {
	for _, text := range texts {
		if i, ok := b.dict.Strings.Lookup(text); ok && b.subset.HasString(i) {
			continue
		}
		if _, seen := b.texts[text]; !seen {
			b.texts[text] = struct{}{}
			b.textBytes += profiledict.FieldLen(len(text))
		}
	}
}
