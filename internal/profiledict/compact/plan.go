// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"cmp"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// plan says which samples go into which part. With a limit it fills parts in the profiles' order up to a
// target, first the limit itself; the smallest target that needs no more parts makes them even. A profile that
// fits into a part stays whole. What exactly a part will take shows only when its dictionary is arranged, so
// emit measures again.
func (b *Batch) plan() [][]piece {
	all := b.inOrder()
	limit := b.options.MaxBytes
	if limit == 0 {
		return [][]piece{all}
	}
	b.arrange(all)
	size := b.sizeOf(all)
	if size <= limit {
		return [][]piece{all}
	}
	pl := &b.planner
	pl.begin(b, all)
	parts := pl.fill(limit)
	low, high := size/len(parts), limit
	for high-low > limit/64 {
		target := (low + high) / 2
		if even := pl.fill(target); len(even) <= len(parts) {
			parts, high = even, target
		} else {
			low = target
		}
	}
	return parts
}

// inOrder gives all profiles whole: those of a scope together, scopes of a resource together, else as they came.
func (b *Batch) inOrder() []piece {
	pieces := make([]piece, len(b.profiles))
	for i := range b.profiles {
		p := &b.profiles[i]
		pieces[i] = piece{profile: int32(i), from: p.first, to: p.first + p.count}
	}
	slices.SortStableFunc(pieces, func(a, c piece) int {
		s, t := b.profiles[a.profile].scope, b.profiles[c.profile].scope
		return cmp.Or(cmp.Compare(b.scopes.items[s].resource, b.scopes.items[t].resource), cmp.Compare(s, t))
	})
	return pieces
}

// planner fills parts.
type planner struct {
	b     *Batch
	tally profiledict.Tally
	// profiles are all profiles whole; tooLarge says which of them exceed the limit alone.
	profiles []piece
	tooLarge []bool

	parts [][]piece
	part  []piece
	// bytes is the size of part without its dictionary, which tally has.
	bytes           int
	resource, scope int32
}

// begin takes the batch's subset of all profiles as the source of indices.
func (pl *planner) begin(b *Batch, profiles []piece) {
	pl.b, pl.profiles = b, profiles
	pl.tally.Reset(&b.subset)
	pl.tooLarge = make([]bool, len(profiles))
	limit := b.options.MaxBytes
	for i, p := range profiles {
		pl.open()
		pl.tooLarge[i] = !pl.addWhole(p, limit)
		if pl.tooLarge[i] {
			b.clusterSamples(&b.profiles[p.profile])
		}
	}
}

// fill makes parts of about target bytes.
func (pl *planner) fill(target int) [][]piece {
	pl.parts = nil
	pl.open()
	for i, p := range pl.profiles {
		if pl.tooLarge[i] {
			pl.addSplit(p, target)
			continue
		}
		if len(pl.part) > 0 && !pl.addWhole(p, target) {
			pl.close()
		}
		if len(pl.part) == 0 {
			pl.addWhole(p, pl.b.options.MaxBytes)
		}
	}
	if len(pl.part) > 0 {
		pl.close()
	}
	return pl.parts
}

// messagePrefixes bounds what the lengths of the dictionary's and of the outermost messages take.
const messagePrefixes = 2 * (1 + 5)

func (pl *planner) open() {
	pl.part = nil
	pl.bytes = messagePrefixes
	pl.resource, pl.scope = unknown, unknown
	pl.tally.Begin()
}

func (pl *planner) close() {
	pl.parts = append(pl.parts, pl.part)
	pl.open()
}

// state is what a part can be taken back to.
type state struct {
	pieces, bytes   int
	resource, scope int32
	tally           profiledict.TallyMark
}

func (pl *planner) mark() state {
	return state{len(pl.part), pl.bytes, pl.resource, pl.scope, pl.tally.Mark()}
}

func (pl *planner) takeBack(s state) {
	pl.part, pl.bytes, pl.resource, pl.scope = pl.part[:s.pieces], s.bytes, s.resource, s.scope
	pl.tally.Return(s.tally)
}

func (pl *planner) size() int { return pl.bytes + pl.tally.Bytes }

// addWhole adds all of a profile to the part, or nothing where the part would exceed target.
func (pl *planner) addWhole(p piece, target int) bool {
	before := pl.mark()
	profile := &pl.b.profiles[p.profile]
	pl.addHeader(p)
	for i := p.from; i < p.to && pl.size() <= target; i++ {
		s := &pl.b.samples[i]
		pl.addSample(s, profile.shape, 0, s.count)
	}
	if pl.size() > target {
		pl.takeBack(before)
		return false
	}
	pl.part = append(pl.part, p)
	return true
}

// addSplit adds a profile, closing a part wherever one is full.
func (pl *planner) addSplit(p piece, target int) {
	shape, rest := pl.b.profiles[p.profile].shape, p
	before := pl.mark()
	if pl.addHeader(rest); pl.size() > target && len(pl.part) > 0 {
		pl.takeBack(before)
		pl.close()
		pl.addHeader(rest)
	}
	i, skip := p.from, uint32(0)
	for i < p.to {
		s := &pl.b.samples[i]
		before := pl.mark()
		pl.addSample(s, shape, skip, s.count)
		if pl.size() <= target {
			i, skip = i+1, 0
			continue
		}
		pl.takeBack(before)
		if len(pl.part) > 0 || rest.from != i || rest.skip != skip {
			rest = pl.cut(rest, i, skip)
			pl.addHeader(rest)
			continue
		}
		// The part has nothing else, and yet this sample does not fit: it is split between its observations.
		skip += pl.addObservations(s, shape, skip, target)
		if skip == s.count {
			i, skip = i+1, 0
		}
	}
	pl.part = append(pl.part, rest)
}

// cut ends a piece before the observation skip of sample i, closes the part, and gives the rest of the piece.
func (pl *planner) cut(whole piece, i int32, skip uint32) (rest piece) {
	head := whole
	head.to, head.end = i, 0
	if skip > 0 {
		head.to, head.end = i+1, skip
	}
	if head.to > head.from {
		pl.part = append(pl.part, head)
	}
	pl.close()
	whole.from, whole.skip = i, skip
	return whole
}

// addObservations adds as many observations of a sample as fit, from skip on, at least one, and says how many.
func (pl *planner) addObservations(s *sample, shape shape, skip uint32, target int) uint32 {
	pl.addSample(s, shape, skip, skip+1)
	pl.bytes += 3 * maxPrefix // the lengths of the sample and of its lists grow
	n := uint32(1)
	for ; skip+n < s.count; n++ {
		bytes := 0
		if shape != valuesAlone {
			bytes += 8
		}
		if shape != timestampsAlone {
			bytes += profiledict.VarintLen(uint64(pl.b.values[s.firstValue+skip+n]))
		}
		if pl.size()+bytes > target {
			break
		}
		pl.bytes += bytes
	}
	return n
}

// addHeader adds what a profile's piece needs beside its samples.
func (pl *planner) addHeader(p piece) {
	b, profile := pl.b, &pl.b.profiles[p.profile]
	if profile.scope != pl.scope {
		scope := &b.scopes.items[profile.scope]
		if scope.resource != pl.resource {
			pl.resource = scope.resource
			pl.bytes += maxPrefix + b.resources.items[scope.resource].size.bound
		}
		pl.scope = profile.scope
		pl.bytes += maxPrefix + scope.size.bound
	}
	pl.tally.AddString(profile.sampleType.typ)
	pl.tally.AddString(profile.sampleType.unit)
	pl.tally.AddString(profile.periodType.typ)
	pl.tally.AddString(profile.periodType.unit)
	pl.tally.AddAttributes(profile.attributes)
	pl.bytes += maxPrefix + profile.headerLen(&b.subset, p.isFirst(profile))
}

// maxPrefix bounds the tag and length of a message of less than 256 MB.
const maxPrefix = 1 + 4

func (pl *planner) addSample(s *sample, shape shape, from, to uint32) {
	pl.tally.AddStack(s.stack)
	pl.tally.AddAttributes(s.attributes)
	pl.tally.AddLink(s.link)
	pl.bytes += pl.b.sampleLen(s, shape, from, to, &pl.b.subset)
}
