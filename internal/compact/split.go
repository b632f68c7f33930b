// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"cmp"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// splitter cuts a batch into parts of Options.MaxBytes, in these steps:
//
//	groups    profiles that are sample types of the same samples
//	atoms     what is never cut: a group that fits into a part, else one sample, or some observations of a large
//	          one; the samples of a group that share an entry larger than a part are one atom
//	lastNeeds which atom is the last that needs each entry
//	fill      atoms in order, a new part wherever one is full; the smallest target that needs no more parts makes
//	          them even
//
// The atoms of a group that does not fit are in the order of their stacks from the root on, those of all
// its profiles together, so that the parts have little in common.
//
// Entries that several parts need are repeated in each. With Options.MaxGrowth a part is closed only while all that is
// repeated stays within that bound; where little but shared entries would go into a part, it becomes larger than
// MaxBytes instead.
type splitter struct {
	b     *Batch
	limit int
	// whole is the encoded size of all atoms as one message.
	whole int

	pieces []piece
	// ends[a] is where the pieces of atom a end in pieces; they begin where those of atom a−1 end.
	ends []int32

	needs [numTables][]need
	// ending[a] is the size of the entries that atom a is the last to need.
	ending []int
	// part is the number of the part that is being filled, firstPart that of the first since the filling began.
	part, firstPart int32
	// fresh and repeated are the bytes that entering has found, new to all parts and new to this one alone.
	fresh, repeated int

	// classes is the number of entries that are larger than a part may be.
	classes int32
	class   [numTables][]int32
	// stackRanks orders the stacks from the root on.
	stackRanks []uint32
	// joinedAt[p] is, while join works, the position of profile p's piece plus one.
	joinedAt []int32
}

// table is a table of the dictionary, or a list of what surrounds samples. Entries refer to entries of
// lower tables only. A set of attributes is no entry of its own in OTLP and has no size.
type table int8

const (
	tableString table = iota
	tableAttribute
	tableSet
	tableFunction
	tableMapping
	tableLocation
	tableStack
	tableLink
	tableResource
	tableScope
	tableProfile
	numTables
)

// need is the number of the last part that an entry was entered into, and the last atom that needs it.
type need struct{ part, lastAtom int32 }

// split returns the pieces of each part. b.subset must be arranged for all of them, size be its encoded size.
func (b *Batch) split(all []piece, size int) [][]piece {
	s := &b.splitter
	s.reset(b, size)
	s.findClasses()
	for len(all) > 0 {
		n := b.groupLen(all)
		s.addGroup(all[:n])
		all = all[n:]
	}
	s.findLastNeeds()
	return s.join(s.fillEvenly(size))
}

func (s *splitter) reset(b *Batch, size int) {
	s.b, s.limit = b, b.options.MaxBytes
	s.whole = size
	s.pieces, s.ends = s.pieces[:0], s.ends[:0]
	for t, n := range [numTables]int{
		b.dict.Strings.Len(), b.dict.Attributes.Len(), b.dict.AttributeSets.Len(), b.dict.Functions.Len(),
		b.dict.Mappings.Len(), b.dict.Locations.Len(), b.dict.Stacks.Len(), b.dict.Links.Len(),
		len(b.resources.items), len(b.scopes.items), len(b.profiles),
	} {
		s.needs[t] = zeroed(s.needs[t], n)
	}
	s.joinedAt = zeroed(s.joinedAt, len(b.profiles))
	s.part, s.firstPart = 1, 1
	s.stackRanks = nil
}

// zeroed returns n zero values, in the memory of s where it suffices.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// maxSampleTypes is the largest group. Real profiles have up to a handful of sample types.
const maxSampleTypes = 16

// groupLen returns how many of the first profiles look like sample types of the same samples, as those of one
// pprof do. They refer to the same stacks, so they share a part, or are cut at the same stacks.
func (b *Batch) groupLen(pieces []piece) int {
	first := &b.profiles[pieces[0].profile]
	n := 1
	for ; n < min(len(pieces), maxSampleTypes); n++ {
		next := &b.profiles[pieces[n].profile]
		if first.scope != next.scope || first.Time != next.Time || first.DurationNanos != next.DurationNanos ||
			first.Attributes != next.Attributes || slices.ContainsFunc(pieces[:n], func(p piece) bool {
			return b.profiles[p.profile].SampleType == next.SampleType
		}) {
			break
		}
	}
	return n
}

// references calls visit for each entry that entry i of t refers to.
func (s *splitter) references(t table, i int32, visit func(table, int32)) {
	d := &s.b.dict
	switch t {
	case tableAttribute:
		a := d.Attributes.At(profiledict.AttributeIndex(i))
		visit(tableString, int32(a.Key))
		visit(tableString, int32(a.Unit))
	case tableSet:
		for _, a := range d.AttributeSets.At(profiledict.AttributeSetIndex(i)) {
			visit(tableAttribute, a)
		}
	case tableFunction:
		f := d.Functions.At(profiledict.FunctionIndex(i))
		visit(tableString, int32(f.Name))
		visit(tableString, int32(f.SystemName))
		visit(tableString, int32(f.Filename))
	case tableMapping:
		m := d.Mappings.At(profiledict.MappingIndex(i))
		visit(tableString, int32(m.Filename))
		visit(tableSet, int32(m.Attributes))
	case tableLocation:
		l, lines := d.Locations.At(profiledict.LocationIndex(i))
		visit(tableMapping, int32(l.Mapping))
		visit(tableSet, int32(l.Attributes))
		for k := range lines {
			visit(tableFunction, int32(lines[k].Function))
		}
	case tableStack:
		for _, l := range d.Stacks.At(profiledict.StackIndex(i)) {
			visit(tableLocation, l)
		}
	case tableScope:
		visit(tableResource, s.b.scopes.items[i].resource)
	case tableProfile:
		p := &s.b.profiles[i]
		visit(tableScope, p.scope)
		visit(tableSet, int32(p.Attributes))
		for _, t := range [...]ValueType{p.SampleType, p.PeriodType} {
			visit(tableString, int32(t.Type))
			visit(tableString, int32(t.Unit))
		}
	default: // refers to nothing
	}
}

// maxPrefix bounds the tag and length of a message of less than 256 MB.
const maxPrefix = 1 + 4

// entryLen returns the encoded size of an entry with the indices of the whole, which those of a part can hardly exceed.
func (s *splitter) entryLen(t table, i int32) int {
	b := s.b
	switch t {
	case tableSet:
		return 0
	case tableResource:
		return maxPrefix + b.resources.items[i].size.bound
	case tableScope:
		return maxPrefix + b.scopes.items[i].size.bound
	case tableProfile:
		return maxPrefix + b.profiles[i].headerLen(&b.subset)
	default:
		return profiledict.FieldLen(b.subset.entryLen(t, i))
	}
}

// enter puts an entry, with all that it refers to, into the part that is being filled.
func (s *splitter) enter(t table, i int32) {
	if i == 0 && t <= tableLink {
		return // every part has the zero values
	}
	n := &s.needs[t][i]
	if n.part == s.part {
		return
	}
	if n.part < s.firstPart {
		s.fresh += s.entryLen(t, i)
	} else {
		s.repeated += s.entryLen(t, i)
	}
	n.part = s.part
	if t != tableStack {
		s.references(t, i, s.enter)
		return
	}
	// Fast path for the longest lists, most of whose locations are in the part already.
	locations := s.needs[tableLocation]
	for _, l := range s.b.dict.Stacks.At(profiledict.StackIndex(i)) {
		if locations[l].part != s.part {
			s.enter(tableLocation, l)
		}
	}
}

// enterPiece enters all that a piece needs and returns the size of its samples.
func (s *splitter) enterPiece(p *piece) (samples int) {
	s.enter(tableProfile, p.profile)
	profile := &s.b.profiles[p.profile]
	if p.isFirst(profile) {
		samples = profile.payloadLen()
	}
	for i := p.from; i < p.to; i++ {
		sample := &s.b.samples[i]
		s.enter(tableStack, int32(sample.Stack))
		s.enter(tableSet, int32(sample.Attributes))
		s.enter(tableLink, int32(sample.Link))
		from, to := p.observations(i, sample)
		samples += s.b.sampleLen(sample, profile.shape, from, to, &s.b.subset)
	}
	return samples
}

// addGroup makes atoms of a group.
func (s *splitter) addGroup(group []piece) {
	if s.fits(group) {
		s.pieces = append(s.pieces, group...)
		s.endAtom()
		return
	}
	s.rankStacks()
	var next [maxSampleTypes]int32
	for k, p := range group {
		s.sortSamples(p)
		next[k] = p.from
		if p.from == p.to {
			s.pieces = append(s.pieces, p)
			s.endAtom()
		}
	}
	s.pieces = slices.Grow(s.pieces, samplesOf(group))
	s.ends = slices.Grow(s.ends, samplesOf(group))
	for {
		first, key := -1, uint32(0)
		for k, p := range group {
			if next[k] < p.to {
				if at := s.key(next[k]); first < 0 || at < key {
					first, key = k, at
				}
			}
		}
		if first < 0 {
			return
		}
		if key >= uint32(s.classes) {
			s.addSample(group[first].profile, next[first])
			next[first]++
			continue
		}
		for k, p := range group {
			from := next[k]
			for next[k] < p.to && s.key(next[k]) == key {
				next[k]++
			}
			if from < next[k] {
				s.pieces = append(s.pieces, piece{profile: p.profile, from: from, to: next[k]})
			}
		}
		s.endAtom()
	}
}

func samplesOf(pieces []piece) (n int) {
	for _, p := range pieces {
		n += int(p.to - p.from)
	}
	return n
}

func (s *splitter) endAtom() { s.ends = append(s.ends, int32(len(s.pieces))) }

// fits reports whether pieces fit into a part alone.
func (s *splitter) fits(pieces []piece) bool {
	s.part++
	s.fresh, s.repeated = 0, 0
	size := emptyMessage
	for _, p := range pieces {
		s.enter(tableProfile, p.profile)
		one := p
		for at := p.from; ; at++ {
			one.from, one.to = at, min(at+1, p.to)
			size += s.enterPiece(&one)
			if size+s.fresh+s.repeated > s.limit {
				return false
			}
			if one.to == p.to {
				break
			}
		}
	}
	return true
}

// addSample makes an atom of a sample, or, of one that takes half a part or does not fit into a part alone, of runs of
// its observations.
func (s *splitter) addSample(profile, i int32) {
	sample, p := &s.b.samples[i], piece{profile: profile, from: i, to: i + 1}
	step := sample.count
	if size := s.b.sampleLen(sample, s.b.profiles[profile].shape, 0, sample.count, &s.b.subset); size > s.limit/2 {
		step = max(1, uint32(int64(sample.count)*int64(s.limit)/8/int64(size)))
	}
	if first := p; step > 1 {
		if first.end = step; !s.fits([]piece{first}) {
			step = 1
		}
	}
	for ; p.skip < sample.count; p.skip += step {
		if p.end = p.skip + step; p.end >= sample.count {
			p.end = 0
		}
		s.pieces = append(s.pieces, p)
		s.endAtom()
	}
}

// key orders the samples of a group: first those of each class, then by their stacks from the root on.
func (s *splitter) key(i int32) uint32 {
	sample := &s.b.samples[i]
	if s.classes > 0 {
		if class := cmp.Or(s.class[tableStack][sample.Stack], s.class[tableSet][sample.Attributes]); class > 0 {
			return uint32(class - 1)
		}
	}
	return uint32(s.classes) + s.stackRanks[sample.Stack]
}

func (s *splitter) sortSamples(p piece) {
	samples := s.b.samples[p.from:p.to]
	// Keys with positions are sorted, then the samples are moved: that is cheaper than sorting samples.
	order := make([]uint64, len(samples))
	for i := range samples {
		order[i] = uint64(s.key(p.from+int32(i)))<<32 | uint64(i)
	}
	slices.Sort(order)
	sorted := make([]sample, len(samples))
	for i, o := range order {
		sorted[i] = samples[uint32(o)]
	}
	copy(samples, sorted)
}

// rankStacks returns every stack of the batch its place in the order from the root on, once.
func (s *splitter) rankStacks() {
	table := &s.b.dict.Stacks
	if s.stackRanks != nil {
		return
	}
	stacks := make([]profiledict.StackIndex, table.Len())
	for i := range stacks {
		stacks[i] = profiledict.StackIndex(i)
	}
	slices.SortFunc(stacks, func(x, y profiledict.StackIndex) int { return compareFromRoot(table.At(x), table.At(y)) })
	s.stackRanks = make([]uint32, len(stacks))
	for rank, stack := range stacks {
		s.stackRanks[stack] = uint32(rank)
	}
}

// compareFromRoot compares stacks, which are leaf first, from their ends. No two of a dictionary are equal.
func compareFromRoot(a, b []int32) int {
	for i, k := len(a)-1, len(b)-1; i >= 0 && k >= 0; i, k = i-1, k-1 {
		if a[i] != b[k] {
			return cmp.Compare(a[i], b[k])
		}
	}
	return cmp.Compare(len(a), len(b))
}

// findClasses numbers the entries that are larger than a part may be, and notes which entries refer to
// which of them. An entry that refers to several counts for the first.
func (s *splitter) findClasses() {
	s.classes = 0
	if s.b.options.MaxGrowth == 0 || s.b.subset.largest <= s.limit {
		return
	}
	for t := tableString; t <= tableStack; t++ {
		s.class[t] = zeroed(s.class[t], len(s.needs[t]))
		for i := 1; i < len(s.class[t]); i++ {
			class := &s.class[t][i]
			s.references(t, int32(i), func(t table, i int32) { *class = cmp.Or(*class, s.class[t][i]) })
			if *class == 0 && s.b.subset.has(t, int32(i)) && s.entryLen(t, int32(i)) > s.limit {
				s.classes++
				*class = s.classes
			}
		}
	}
}

// atom returns the pieces of an atom.
func (s *splitter) atom(a int) []piece {
	from := int32(0)
	if a > 0 {
		from = s.ends[a-1]
	}
	return s.pieces[from:s.ends[a]]
}

// findLastNeeds notes which atom is the last to need each entry.
func (s *splitter) findLastNeeds() {
	const never = -1
	for t := range s.needs {
		for i := range s.needs[t] {
			s.needs[t][i].lastAtom = never
		}
	}
	at := int32(0)
	visit := func(t table, i int32) { s.needs[t][i].lastAtom = max(s.needs[t][i].lastAtom, at) }
	for a := range s.ends {
		at = int32(a)
		for _, p := range s.atom(a) {
			visit(tableProfile, p.profile)
			for i := p.from; i < p.to; i++ {
				sample := &s.b.samples[i]
				visit(tableStack, int32(sample.Stack))
				visit(tableSet, int32(sample.Attributes))
				visit(tableLink, int32(sample.Link))
			}
		}
	}
	s.ending = zeroed(s.ending, len(s.ends))
	for t := tableProfile; t >= 0; t-- {
		for i := range s.needs[t] {
			if at = s.needs[t][i].lastAtom; at == never || i == 0 && t <= tableLink {
				continue
			}
			s.ending[at] += s.entryLen(t, int32(i))
			s.references(t, int32(i), visit)
		}
	}
}

// emptyMessage bounds the size of a message without profiles: the prefixes of the dictionary and of the outermost
// messages, and the zero values of the seven tables.
const emptyMessage = 2*(1+5) + 5*2 + 2 + 2*(1+2) + 2

// fillEvenly returns the first atom of each part, and then the number of atoms.
func (s *splitter) fillEvenly(size int) []int {
	starts := s.fill(s.limit)
	low, high := size/len(starts), s.limit
	for high-low > s.limit/16 {
		target := (low + high) / 2
		if even := s.fill(target); len(even) <= len(starts) {
			starts, high = even, target
		} else {
			low = target
		}
	}
	return append(starts, len(s.ends))
}

// fill puts the atoms into parts of up to limit bytes and returns the first atom of each. open is the size of the
// entries that have been entered and are still needed: if the rest went as a single part, so much would be
// repeated in it.
func (s *splitter) fill(limit int) (starts []int) {
	s.part++
	s.firstPart = s.part
	starts = append(starts, 0)
	start, open := 0, 0
	// The sums of all closed parts, and the part that is being filled.
	allFresh, allRepeated := 0, 0
	fresh, repeated := emptyMessage, 0
	for a := range s.ends {
		header := 0 // of a sample whose earlier observations are in the part
		if first := &s.atom(a)[0]; first.skip > 0 {
			header = s.sampleHeader(first)
		}
		samples := s.enterAtom(a) - header
		atomFresh, atomRepeated := samples+s.fresh, s.repeated
		if a > start && fresh+repeated+atomFresh+atomRepeated > limit &&
			s.mayRepeat(allRepeated+repeated, allFresh+fresh) &&
			s.mayRepeat(allRepeated+repeated+open+header+emptyMessage, s.whole) {
			starts = append(starts, a)
			allFresh, allRepeated = allFresh+fresh, allRepeated+repeated
			start, fresh, repeated = a, 0, emptyMessage+header
			s.part++
			open += s.fresh
			s.enterAtom(a) // what was fresh before is repeated now, but only in this sum
			atomRepeated = samples + s.repeated - atomFresh
		} else {
			open += s.fresh
		}
		fresh, repeated = fresh+atomFresh, repeated+atomRepeated
		open -= s.ending[a]
	}
	return starts
}

// mayRepeat reports whether so much may be repeated of what is bytes long.
func (s *splitter) mayRepeat(repeated, bytes int) bool {
	growth := s.b.options.MaxGrowth
	return growth == 0 || int64(repeated) <= int64(growth-1)*int64(bytes)
}

// enterAtom enters the pieces of an atom, and returns the size of their samples.
func (s *splitter) enterAtom(a int) (samples int) {
	s.fresh, s.repeated = 0, 0
	pieces := s.atom(a)
	for i := range pieces {
		samples += s.enterPiece(&pieces[i])
	}
	return samples
}

// sampleHeader returns the size of what a part repeats of a sample whose observations it has some of. The lengths of
// the sample and of its two lists may each take one byte more when observations are added to those in a part.
func (s *splitter) sampleHeader(p *piece) int {
	const longerLengths = 3
	sample := &s.b.samples[p.from]
	return s.b.sampleLen(sample, s.b.profiles[p.profile].shape, p.skip, p.skip, &s.b.subset) - longerLengths
}

// join returns the pieces of each part, those of a profile as one, in the profiles' order.
func (s *splitter) join(starts []int) [][]piece {
	parts := make([][]piece, 0, len(starts)-1)
	for k := range len(starts) - 1 {
		var joined []piece
		for a := starts[k]; a < starts[k+1]; a++ {
			for _, p := range s.atom(a) {
				if k := s.joinedAt[p.profile]; k > 0 {
					joined[k-1].to, joined[k-1].end = p.to, p.end
					continue
				}
				joined = append(joined, p)
				s.joinedAt[p.profile] = int32(len(joined))
			}
		}
		for _, p := range joined {
			s.joinedAt[p.profile] = 0
		}
		slices.SortFunc(joined, s.b.compareOrder)
		parts = append(parts, joined)
	}
	return parts
}
