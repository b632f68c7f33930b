// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// observation is one sample as a record tells of it.
type observation struct {
	stack profiledict.StackIndex
	set   profiledict.AttributeSetIndex
	link  profiledict.LinkIndex
	// time and period are in nanoseconds, 0 where they are not known.
	time, period int64
	value        int64
	// valued says that the value is more than the count of one that a time alone stands for.
	valued bool
}

// groupKey is what the samples of one Profile share. All samples of a Profile have one shape: those with a time, and
// those with a value, are told apart from those without.
type groupKey struct {
	scope         int32
	attributes    profiledict.AttributeSetIndex
	period        int64
	typ           Type
	timed, valued bool
	// said is what the records say of their profile, by its position in samples.said; 0 for nothing.
	said int32
}

// group is one Profile to be.
type group struct {
	groupKey
	profile     pprofile.Profile
	first, last int64
	// count is the number of samples; firstSample and lastSample are the ends of their list.
	count                   int
	firstSample, lastSample int32
	id                      compact.ContentID
	// record is the last record that id was told of.
	record int
}

// sample is what observations of one identity become. next is the group's next sample; firstSeen and lastSeen are
// the ends of the list of its times and values. 0 ends a list.
type sample struct {
	group               int32
	stack               profiledict.StackIndex
	set                 profiledict.AttributeSetIndex
	link                profiledict.LinkIndex
	next                int32
	firstSeen, lastSeen int32
}

// seen is a time and a value of a sample, and where the sample's next one stands.
type seen struct {
	time, value int64
	next        int32
}

// samples collects the observations of a request. Entry 0 of each list is unused, so that 0 can mean none.
type samples struct {
	groups     []group
	groupOf    map[groupKey]int32
	lastGroup  int32
	list       []sample
	seen       []seen
	identities profiledict.HashIndex
	said       []description
	saidOf     map[description]int32
}

func (s *samples) reset() {
	clear(s.groups) // they hold pdata of the request before
	s.groups = append(s.groups[:0], group{})
	if s.groupOf == nil {
		s.groupOf = make(map[groupKey]int32)
	}
	clear(s.groupOf)
	s.lastGroup = 0
	const maxHint = 1 << 12
	s.identities.Reset(min(len(s.list), maxHint)) // the request before was probably as large
	s.list = append(s.list[:0], sample{})
	s.seen = append(s.seen[:0], seen{})
	clear(s.said)
	s.said = append(s.said[:0], description{})
	clear(s.saidOf)
}

// internSaid gives the position of a description.
func (s *samples) internSaid(d description) int32 {
	if i, ok := s.saidOf[d]; ok {
		return i
	}
	if s.saidOf == nil {
		s.saidOf = make(map[description]int32)
	}
	i := int32(len(s.said))
	s.said = append(s.said, d)
	s.saidOf[d] = i
	return i
}

// put adds an observation to group g.
func (s *samples) put(g int32, o *observation) {
	group := &s.groups[g]
	if group.timed {
		if group.count == 0 || o.time < group.first {
			group.first = o.time
		}
		group.last = max(group.last, o.time)
	}
	i := s.sampleOf(g, o)
	entry := &s.list[i]
	if !group.timed && entry.firstSeen != 0 {
		// Without times an observation is only a number more. A sum that does not fit stays apart.
		at := &s.seen[entry.lastSeen]
		if sum := at.value + o.value; (sum > at.value) == (o.value > 0) {
			at.value = sum
			return
		}
		i = s.append(g, o)
		entry = &s.list[i]
	}
	at := int32(len(s.seen))
	s.seen = append(s.seen, seen{time: o.time, value: o.value})
	if entry.firstSeen == 0 {
		entry.firstSeen = at
	} else {
		s.seen[entry.lastSeen].next = at
	}
	entry.lastSeen = at
}

// sampleOf finds the sample of the observation's identity, or adds it.
func (s *samples) sampleOf(g int32, o *observation) int32 {
	h := profiledict.Mix(uint64(uint32(o.stack))<<32|uint64(uint32(o.set)), uint64(uint32(o.link))<<32|uint64(uint32(g)))
	p := s.identities.Start(h)
	for i := s.identities.Next(&p); i != 0; i = s.identities.Next(&p) {
		if e := &s.list[i]; e.group == g && e.stack == o.stack && e.set == o.set && e.link == o.link {
			return i
		}
	}
	i := s.append(g, o)
	s.identities.Insert(p, i)
	return i
}

func (s *samples) append(g int32, o *observation) int32 {
	i := int32(len(s.list))
	s.list = append(s.list, sample{group: g, stack: o.stack, set: o.set, link: o.link})
	group := &s.groups[g]
	if group.count == 0 {
		group.firstSample = i
	} else {
		s.list[group.lastSample].next = i
	}
	group.lastSample = i
	group.count++
	return i
}

// times gives the times and values of a sample, appended to scratch.
func (s *samples) times(e *sample, times []uint64, values []int64) ([]uint64, []int64) {
	for i := e.firstSeen; i != 0; i = s.seen[i].next {
		times = append(times, uint64(s.seen[i].time))
		values = append(values, s.seen[i].value)
	}
	return times, values
}

// release lets go of lists that are too large to be kept for the next request.
func (s *samples) release() {
	const maxKept = 1 << 18
	if cap(s.seen) > maxKept {
		*s = samples{}
		return
	}
	clear(s.groups)
	s.groups = s.groups[:0]
	clear(s.groupOf)
	clear(s.said)
	clear(s.saidOf)
}
