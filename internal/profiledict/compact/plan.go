// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"cmp"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// plan says which samples go into which part. With a limit it fills parts in the profiles' order up to a
// target, first the limit itself; the smallest target that needs no more parts makes them even. What fits into a
// part stays whole: a profile, with the other sample types of the same samples. What exactly a part will take shows only
// when its dictionary is arranged, so emit measures again.
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
	b      *Batch
	tally  profiledict.Tally
	groups []group

	parts [][]piece
	part  []piece
	// bytes is the size of part without its dictionary, which tally has.
	bytes           int
	resource, scope int32
}

// group is profiles, whole, that have the same samples in several types, as those of one pprof do. They refer to
// the same stacks, so they share a part, or, where they are too large for one, are split alike.
type group struct {
	profiles []piece
	tooLarge bool
}

// begin takes the batch's subset of all profiles as the source of indices.
func (pl *planner) begin(b *Batch, profiles []piece) {
	pl.b = b
	pl.tally.Reset(&b.subset)
	pl.groups = pl.groups[:0]
	for len(profiles) > 0 {
		n := 1
		for n < len(profiles) && b.sameSamples(profiles[:n], profiles[n]) {
			n++
		}
		g := group{profiles: profiles[:n]}
		profiles = profiles[n:]
		pl.open()
		if g.tooLarge = !pl.addWhole(&g, b.options.MaxBytes); g.tooLarge {
			b.clusterSamples(g.profiles)
		}
		pl.groups = append(pl.groups, g)
	}
}

// maxSampleTypes is the largest group. Real profiles have up to a handful of sample types.
const maxSampleTypes = 16

// sameSamples reports whether next looks like another sample type of the profiles before it.
func (b *Batch) sameSamples(before []piece, next piece) bool {
	if len(before) == maxSampleTypes {
		return false
	}
	n := &b.profiles[next.profile]
	for _, piece := range before {
		p := &b.profiles[piece.profile]
		if p.scope != n.scope || p.time != n.time || p.duration != n.duration ||
			p.attributes != n.attributes || p.sampleType == n.sampleType {
			return false
		}
	}
	return true
}

// fill makes parts of about target bytes.
func (pl *planner) fill(target int) [][]piece {
	pl.parts = nil
	pl.open()
	for i := range pl.groups {
		g := &pl.groups[i]
		if g.tooLarge {
			pl.addSplit(g, target)
			continue
		}
		if len(pl.part) > 0 && !pl.addWhole(g, target) {
			pl.close()
		}
		if len(pl.part) == 0 {
			pl.addWhole(g, pl.b.options.MaxBytes)
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

// addWhole adds all of a group to the part, or nothing where the part would exceed target.
func (pl *planner) addWhole(g *group, target int) bool {
	before := pl.mark()
	for _, p := range g.profiles {
		profile := &pl.b.profiles[p.profile]
		pl.addHeader(p)
		for i := p.from; i < p.to && pl.size() <= target; i++ {
			s := &pl.b.samples[i]
			pl.addSample(s, profile.shape, 0, s.count)
		}
	}
	if pl.size() > target {
		pl.takeBack(before)
		return false
	}
	pl.part = append(pl.part, g.profiles...)
	return true
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
