// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"cmp"
	"math"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// splitter cuts a batch into parts of Options.MaxBytes, in these steps:
//
//	measureEntries    computes the size of every entry
//	cutGroup          lists units in the order in which they go into parts: the sample types of a pprof whole if they
//	                  fit into a part, otherwise each of their samples, and a large sample in ranges of its observations
//	measureUnits      computes the size of all units before each unit, and from each on
//	fillEvenly        fills part after part, up to the smallest target that needs no more parts, which makes them even
//	join              joins the units of a part that belong to the same profile
//
// Samples are sorted by their stacks from the root on, those of all sample types together, so that parts have little in
// common. Samples that share an entry larger than a part stay together.
//
// Each part repeats the entries that it shares with others. If that would exceed Options.MaxGrowth, a part becomes
// larger than Options.MaxBytes instead. Apart from sorting, the time is linear in the encoded size: shared entries are
// visited once for each part, not once for each profile or sample that refers to them.
type splitter struct {
	b     *Batch
	limit int
	// whole is the encoded size of everything as one message.
	whole int

	entries [numTables][]entry
	// largeEntries is the number of entries that are larger than a part.
	largeEntries int32
	// stackRanks is the position of each stack in the order of compareFromRoot.
	stackRanks []uint32
	// measured is the total size of the groups that fits has measured.
	measured int

	units []unit
	// before[k] and after[k] are the sizes of the units before k, and of those from k on, as one message each.
	before, after []int

	// part numbers the part that is being filled, size is its size so far. marks[t][i] is the last part that entry i of
	// table t was added to.
	part  int32
	size  int
	marks [numTables][]int32
	// lastCut is the sample whose range of observations was the last to be added to the part, or unknown.
	lastCut int32

	// joinedAt[p] is, while join works, the position of profile p's range plus one.
	joinedAt []int32
}

// unit is a range that is not cut any further.
type unit struct {
	sampleRange
	// bytes is the encoded size of its samples and its original payload.
	bytes int32
	// joinsNext reports that the next unit must be in the same part.
	joinsNext bool
}

// entry has the sizes of an entry of a table. They are limited to 2 GiB, which no message may exceed.
type entry struct {
	// size is its encoded size, deepSize an upper bound of its size with everything that it refers to.
	size, deepSize int32
	// large is the number of the entry, this one or one that it refers to, which is larger than a part; 0 if there is
	// none.
	large int32
}

// split returns the ranges of each part. b.subset must be arranged for all of them; size is their encoded size.
func (b *Batch) split(all []sampleRange, size int) [][]sampleRange {
	s := &b.splitter
	s.reset(b, size)
	s.measureEntries()
	for len(all) > 0 {
		n := b.groupLen(all)
		s.cutGroup(all[:n])
		all = all[n:]
	}
	s.measureUnits()
	return s.join(s.fillEvenly())
}

func (s *splitter) reset(b *Batch, size int) {
	s.b, s.limit, s.whole = b, b.options.MaxBytes, size
	for t, n := range b.lens() {
		s.entries[t] = dictionary.Zeroed(s.entries[t], n)
		s.marks[t] = dictionary.Zeroed(s.marks[t], n)
	}
	s.joinedAt = dictionary.Zeroed(s.joinedAt, len(b.profiles))
	s.units = s.units[:0]
	s.largeEntries, s.part, s.measured = 0, 0, 0
	s.stackRanks = nil
}

// measureEntries computes the size of each entry, after those that it refers to, and numbers the entries that are
// larger than a part. An entry that refers to several of these has the number of the first.
func (s *splitter) measureEntries() {
	for t := range numTables {
		for i := range s.entries[t] {
			if isZeroValue(t, int32(i)) || t < dictionary.NumTables && s.b.subset.tables[t].uses[i] == 0 {
				continue
			}
			size, large := s.b.entryLen(t, int32(i), &s.b.subset.Writer), int32(0)
			deepSize := int64(size)
			s.b.references(t, int32(i), func(t table, i int32) {
				e := &s.entries[t][i]
				deepSize += int64(e.deepSize)
				large = cmp.Or(large, e.large)
			})
			if large == 0 && size > s.limit && t <= dictionary.StackTable {
				s.largeEntries++
				large = s.largeEntries
			}
			s.entries[t][i] = entry{size: saturated(int64(size)), deepSize: saturated(deepSize), large: large}
		}
	}
}

func saturated(n int64) int32 { return int32(min(n, math.MaxInt32)) }

// isZeroValue reports whether every message has this entry.
func isZeroValue(t table, i int32) bool { return i == 0 && t <= dictionary.LinkTable }

// emptyMessage bounds the size of a message without profiles: the prefixes of the dictionary and of the outermost
// messages, and the zero values of the seven tables.
const emptyMessage = 2*(1+5) + 5*2 + 2 + 2*(1+2) + 2

func (s *splitter) begin() {
	s.part++
	s.size = emptyMessage
	s.lastCut = unknown
}

// add adds an entry, with everything that it refers to, to the part.
func (s *splitter) add(t table, i int32) {
	mark := &s.marks[t][i]
	if *mark == s.part || isZeroValue(t, i) {
		return
	}
	*mark = s.part
	s.size += int(s.entries[t][i].size)
	if t != dictionary.StackTable {
		s.b.references(t, i, s.add)
		return
	}
	// Fast path for the longest lists, most of whose locations are in the part already.
	locations := s.marks[dictionary.LocationTable]
	for _, l := range s.b.dict.Stacks.At(dictionary.StackIndex(i)) {
		if locations[l] != s.part {
			s.add(dictionary.LocationTable, l)
		}
	}
}

// addUnit adds a unit, with everything that it refers to, to the part.
func (s *splitter) addUnit(f *unit) {
	s.size += int(f.bytes)
	s.add(tableProfile, f.profile)
	samples := s.b.samples.Entries[f.from:f.to]
	for i := range samples {
		s.add(dictionary.StackTable, int32(samples[i].Stack))
		s.add(dictionary.SetTable, int32(samples[i].Attributes))
		s.add(dictionary.LinkTable, int32(samples[i].Link))
	}
	if f.skip == 0 && f.end == 0 {
		return
	}
	if s.lastCut == f.from {
		// The ranges become one sample again. Its length and those of its two lists may each take one byte more.
		const longerLengths = 3
		s.size -= s.headerLen(&f.sampleRange) - longerLengths
	}
	s.lastCut = f.from
}

func (s *splitter) newUnit(p sampleRange) unit {
	return unit{sampleRange: p, bytes: saturated(int64(s.b.rangeLen(&p, &s.b.subset.Writer)))}
}

// headerLen returns the encoded size of the first sample of a range without its observations.
func (s *splitter) headerLen(p *sampleRange) int {
	return s.b.sampleLen(&s.b.samples.Entries[p.from], s.b.profiles[p.profile].shape, 0, 0, &s.b.subset.Writer)
}

// MaxSampleTypes is how many profiles are looked at as the sample types of one payload. Real ones have a handful.
const MaxSampleTypes = 16

// groupLen returns how many of the first profiles look like sample types of the same samples, as in a pprof. They refer
// to the same stacks, so they share a part or are cut at the same stacks.
func (b *Batch) groupLen(ranges []sampleRange) int {
	first := &b.profiles[ranges[0].profile]
	n := 1
	for ; n < min(len(ranges), MaxSampleTypes); n++ {
		next := &b.profiles[ranges[n].profile]
		if first.scope != next.scope || first.Time != next.Time || first.DurationNanos != next.DurationNanos ||
			first.Attributes != next.Attributes || slices.ContainsFunc(ranges[:n], func(p sampleRange) bool {
			return b.profiles[p.profile].SampleType == next.SampleType
		}) {
			break
		}
	}
	return n
}

// cutGroup lists the units of a group: the sample types of one pprof.
func (s *splitter) cutGroup(group []sampleRange) {
	if s.fits(group) {
		return
	}
	s.rankStacks()
	// Sorting keys with positions and then moving the samples is cheaper than sorting samples.
	var order []uint64
	var samples [MaxSampleTypes][]sample
	var next [MaxSampleTypes]int32
	for k, p := range group {
		for i := p.from; i < p.to; i++ {
			order = append(order, uint64(s.key(i))<<32|uint64(i))
		}
		samples[k], next[k] = slices.Clone(s.b.samples.Entries[p.from:p.to]), p.from
		if p.from == p.to {
			s.units = append(s.units, s.newUnit(p))
		}
	}
	slices.Sort(order)
	s.units = slices.Grow(s.units, len(order))
	for n, o := range order {
		key, i, k := uint32(o>>32), int32(uint32(o)), 0
		for i < group[k].from || i >= group[k].to {
			k++
		}
		p := sampleRange{profile: group[k].profile, from: next[k], to: next[k] + 1}
		s.b.samples.Entries[p.from] = samples[k][i-group[k].from]
		next[k]++
		f := s.newUnit(p)
		if key >= uint32(s.largeEntries) {
			s.cutSample(f)
			continue
		}
		f.joinsNext = n+1 < len(order) && uint32(order[n+1]>>32) == key
		s.units = append(s.units, f)
	}
}

// fits reports whether a group fits into a part, and lists its profiles whole if it does. Groups that share entries
// count them again, so after measuring a few times the size of the whole, fits reports false for all other groups.
func (s *splitter) fits(group []sampleRange) bool {
	const maxMeasured = 8
	if s.measured/maxMeasured > s.whole {
		return false
	}
	first := len(s.units)
	s.begin()
	for k := 0; k < len(group) && s.size <= s.limit; k++ {
		f := s.newUnit(group[k])
		f.joinsNext = k < len(group)-1
		s.units = append(s.units, f)
		s.addUnit(&f)
	}
	s.measured += s.size
	if s.size > s.limit {
		s.units = s.units[:first]
	}
	return s.size <= s.limit
}

// key orders the samples of a group: first those that share a large entry, then by their stacks from the root on.
func (s *splitter) key(i int32) uint32 {
	sample := &s.b.samples.Entries[i]
	large := cmp.Or(s.entries[dictionary.StackTable][sample.Stack].large,
		s.entries[dictionary.SetTable][sample.Attributes].large)
	if large > 0 {
		return uint32(large - 1)
	}
	return uint32(s.largeEntries) + s.stackRanks[sample.Stack]
}

// rankStacks sorts all stacks of the batch from the root on, once.
func (s *splitter) rankStacks() {
	table := &s.b.dict.Stacks
	if s.stackRanks != nil {
		return
	}
	stacks := make([]dictionary.StackIndex, table.Len())
	for i := range stacks {
		stacks[i] = dictionary.StackIndex(i)
	}
	slices.SortFunc(stacks, func(x, y dictionary.StackIndex) int { return compareFromRoot(table.At(x), table.At(y)) })
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

// cutSample lists a sample whole or, if it is larger than half a part or may not fit into one, in ranges of its
// observations.
func (s *splitter) cutSample(f unit) {
	p, sample := f.sampleRange, &s.b.samples.Entries[f.from]
	room := int64(s.limit - emptyMessage)
	for _, e := range [...]*entry{
		&s.entries[tableProfile][p.profile], &s.entries[dictionary.StackTable][sample.Stack],
		&s.entries[dictionary.SetTable][sample.Attributes], &s.entries[dictionary.LinkTable][sample.Link],
	} {
		room -= int64(e.deepSize)
	}
	if sample.Observed.count < 2 || int64(f.bytes) <= min(room, int64(s.limit/2)) {
		s.units = append(s.units, f)
		return
	}
	size := max(room/8, int64(s.headerLen(&p))) // handling a range takes the time to read its header
	step := uint32(max(1, int64(sample.Observed.count)*size/int64(f.bytes)))
	for ; p.skip < sample.Observed.count; p.skip += step {
		if p.end = p.skip + step; p.end >= sample.Observed.count {
			p.end = 0
		}
		s.units = append(s.units, s.newUnit(p))
	}
}

func (s *splitter) measureUnits() {
	s.before, s.after = s.before[:0], s.after[:0]
	s.begin()
	for k := range s.units {
		s.before = append(s.before, s.size)
		s.addUnit(&s.units[k])
	}
	s.begin()
	s.after = append(s.after, s.before...)
	for k := len(s.units) - 1; k >= 0; k-- {
		s.addUnit(&s.units[k])
		s.after[k] = s.size
	}
}

// mayCut reports whether a part may end before unit k, where all parts up to there have closed bytes: neither these
// parts, nor all parts if the rest became one, may exceed Options.MaxGrowth times what they have as one message.
func (s *splitter) mayCut(k, closed int) bool {
	growth := int64(cmp.Or(s.b.options.MaxGrowth, defaultMaxGrowth))
	return int64(closed) <= growth*int64(s.before[k]) && int64(closed+s.after[k]) <= growth*int64(s.whole)
}

// fillEvenly returns the first unit of each part, and then the number of units.
func (s *splitter) fillEvenly() []int {
	starts := s.fill(s.limit)
	low, high := s.whole/len(starts), s.limit
	for high-low > s.limit/16 {
		target := (low + high) / 2
		if even := s.fill(target); len(even) <= len(starts) {
			starts, high = even, target
		} else {
			low = target
		}
	}
	return append(starts, len(s.units))
}

// fill puts the units into parts of up to target bytes and returns the first of each.
func (s *splitter) fill(target int) (starts []int) {
	closed := 0
	s.begin()
	starts = append(starts, 0)
	for k := 0; k < len(s.units); {
		size := s.size
		next := s.addUncut(k)
		if s.size > target && k > starts[len(starts)-1] && s.mayCut(k, closed+size) {
			starts = append(starts, k)
			closed += size
			s.begin()
			s.addUncut(k)
		}
		k = next
	}
	return starts
}

// addUncut adds unit k, and those that must be in the same part, to the part. It returns the next unit.
func (s *splitter) addUncut(k int) int {
	for s.addUnit(&s.units[k]); s.units[k].joinsNext; s.addUnit(&s.units[k]) {
		k++
	}
	return k + 1
}

// join returns the ranges of each part, those of a profile as one, in the profiles' order.
func (s *splitter) join(starts []int) [][]sampleRange {
	parts := make([][]sampleRange, len(starts)-1)
	for n := range parts {
		var joined []sampleRange
		for _, f := range s.units[starts[n]:starts[n+1]] {
			if at := s.joinedAt[f.profile]; at > 0 {
				joined[at-1].to, joined[at-1].end = f.to, f.end
				continue
			}
			joined = append(joined, f.sampleRange)
			s.joinedAt[f.profile] = int32(len(joined))
		}
		for _, p := range joined {
			s.joinedAt[p.profile] = 0
		}
		slices.SortFunc(joined, s.b.compareOrder)
		parts[n] = joined
	}
	return parts
}
