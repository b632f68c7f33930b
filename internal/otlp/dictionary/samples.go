// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "math"

// Identity distinguishes the samples of a profile.
type Identity struct {
	Stack      StackIndex
	Attributes AttributeSetIndex
	Link       LinkIndex
}

// Sample is a sample of a group, such as a profile, with what has been observed of it.
type Sample[O any] struct {
	Identity
	Group    int32
	Observed O
}

// Samples finds samples by their group and identity. The first sample of each stack is found by the stack's index,
// which is all that most profiles need; the others, which differ in group, attributes or link, by hash. Samples must be
// Reset before its first use.
type Samples[O any] struct {
	Entries []Sample[O]
	// firstOfStack[i] is the first sample of stack i; entries below start are stale. Sample 0 is always the first of its
	// stack, so it is never in others, whose entry 0 means none.
	firstOfStack []int32
	start        int32
	others       HashIndex
}

// Reset forgets all samples, keeps their memory, and makes room for about that many.
func (t *Samples[O]) Reset(samples int) {
	const maxHint = 1 << 12 // the last use was probably as large
	t.Entries, t.firstOfStack, t.start = room(t.Entries, samples), room(t.firstOfStack, samples+1), 0
	t.others.Reset(min(t.others.len(), maxHint))
}

// Begin starts a new set of groups: those so far get no more samples.
func (t *Samples[O]) Begin() {
	t.start = int32(len(t.Entries))
	if n := t.others.len(); n > 0 {
		t.others.Reset(n) // the next group is likely to need as much room
	}
}

// Intern returns the sample of a group with an identity, and adds it if it is new.
func (t *Samples[O]) Intern(group int32, id Identity) (i int32, isNew bool) {
	for int(id.Stack) >= len(t.firstOfStack) {
		t.firstOfStack = append(t.firstOfStack, -1)
	}
	first := t.firstOfStack[id.Stack]
	if first < t.start {
		t.firstOfStack[id.Stack] = int32(len(t.Entries))
		return t.Append(group, id), true
	}
	if s := &t.Entries[first]; s.Identity == id && s.Group == group {
		return first, false
	}
	h := Mix(uint64(uint32(id.Stack))<<32|uint64(uint32(id.Attributes)), uint64(uint32(id.Link))<<32|uint64(uint32(group)))
	p := t.others.Start(h)
	for e := t.others.Next(&p); e != 0; e = t.others.Next(&p) {
		if s := &t.Entries[e]; s.Identity == id && s.Group == group {
			return e, false
		}
	}
	t.others.Insert(p, int32(len(t.Entries)))
	return t.Append(group, id), true
}

// Append adds a sample even if there is one of the same identity.
func (t *Samples[O]) Append(group int32, id Identity) int32 {
	t.Entries = append(t.Entries, Sample[O]{Identity: id, Group: group})
	return int32(len(t.Entries)) - 1
}

// MemoryBytes is what the samples occupy.
func (t *Samples[O]) MemoryBytes() int {
	return BytesOf(t.Entries) + BytesOf(t.firstOfStack) + t.others.bytes()
}

// ObservedSamples are samples with lists of observations, each of a timestamp and the same number of values.
type ObservedSamples struct {
	Samples[ObservationList]
	Observations []Observation
	// Values are those of Observations, one after another.
	Values         []int64
	perObservation int
}

// ObservationList is the first and the last of a sample's observations.
type ObservationList struct{ First, last int32 }

// Observation is an element of a list of observations.
type Observation struct {
	Timestamp uint64
	Next      int32 // -1 ends the list
}

// Reset makes room for about that many samples, and values of all observations, of which each has perObservation.
func (t *ObservedSamples) Reset(samples, perObservation, values int) {
	t.Samples.Reset(samples)
	t.Observations, t.Values, t.perObservation = room(t.Observations, samples), room(t.Values, values), perObservation
}

// Add adds values to those of a sample's only observation. If a sum would overflow, they become another sample.
func (t *ObservedSamples) Add(group int32, id Identity, values []int64) {
	i, isNew := t.Intern(group, id)
	if !isNew {
		if AddAll(t.ValuesOf(t.Entries[i].Observed.First), values) {
			return
		}
		i = t.Append(group, id)
	}
	at := t.observe(0, values)
	t.Entries[i].Observed = ObservationList{at, at}
}

// Observe adds an observation to the list of a sample.
func (t *ObservedSamples) Observe(group int32, id Identity, timestamp uint64, values []int64) {
	i, isNew := t.Intern(group, id)
	at := t.observe(timestamp, values)
	list := &t.Entries[i].Observed
	if isNew {
		list.First = at
	} else {
		t.Observations[list.last].Next = at
	}
	list.last = at
}

func (t *ObservedSamples) observe(timestamp uint64, values []int64) int32 {
	t.Observations = append(t.Observations, Observation{Timestamp: timestamp, Next: -1})
	t.Values = append(t.Values, values...)
	return int32(len(t.Observations)) - 1
}

// ValuesOf returns the values of an observation.
func (t *ObservedSamples) ValuesOf(observation int32) []int64 {
	return t.Values[int(observation)*t.perObservation:][:t.perObservation]
}

// MemoryBytes is what the samples and observations occupy.
func (t *ObservedSamples) MemoryBytes() int {
	return t.Samples.MemoryBytes() + BytesOf(t.Observations) + BytesOf(t.Values)
}

// AddAll adds values to sums. If one of the sums would overflow, it adds nothing and returns false.
func AddAll(sums, values []int64) bool {
	for i, v := range values {
		if v > 0 && sums[i] > math.MaxInt64-v || v < 0 && sums[i] < math.MinInt64-v {
			return false
		}
	}
	for i, v := range values {
		sums[i] += v
	}
	return true
}
