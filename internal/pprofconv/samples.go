// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"math"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// sample is what identifies a sample in OTLP.
type sample struct {
	stack      profiledict.StackIndex
	attributes profiledict.AttributeSetIndex
	link       profiledict.LinkIndex
}

// noSample stands for the first sample of a stack that has none yet.
const noSample = -1

// takeSamples interns all samples that can be understood, with what they refer to.
func (d *decoder) takeSamples() {
	if d.delta.active {
		d.takePlanned()
		return
	}
	for _, at := range d.samples {
		if reason, ok := d.takeSample(at); !ok {
			d.stats.Dropped[reason]++
		}
	}
	d.stats.Samples = len(d.samples) - d.stats.DroppedSamples()
}

// takePlanned interns the samples that have something to say beside the Baseline. Those that cannot be
// understood are counted already, but not those that are over the budget, which only emitted samples use.
func (d *decoder) takePlanned() {
	for i, at := range d.samples {
		if d.delta.current = d.delta.plan[i]; !d.delta.current.taken {
			continue
		}
		if reason, ok := d.takeSample(at); !ok && reason == DropOverBudget {
			d.stats.Dropped[reason]++
			d.stats.Samples--
		}
	}
}

// takeSample reads one sample. It interns nothing before all of the sample is known to be readable.
func (d *decoder) takeSample(at span) (DropReason, bool) {
	d.stack, d.sampleValues, d.valueCount = d.stack[:0], d.sampleValues[:0], 0
	fresh := false
	labels := span{}
	var known knownStack
	var f field
	for p, end := int(at.start), int(at.end); p < end; {
		start := p
		var err error
		if p, err = f.next(d.data, p, end); err != nil {
			return DropMalformed, false
		}
		switch f.number {
		case 1:
			if d.visit != nil && d.isKnown(&known, &f) {
				continue
			}
			isNew, reason, ok := d.takeLocations(&f)
			if !ok {
				return reason, false
			}
			fresh = fresh || isNew
		case 2:
			if !d.takeValues(&f) {
				return DropMalformed, false
			}
		case 3:
			if f.wire != wireBytes {
				return DropMalformed, false
			}
			if labels.end == 0 {
				labels.start = uint32(start)
			}
			labels.end = uint32(p)
		}
	}
	if d.visit != nil {
		return d.visitSample(known, labels, fresh)
	}
	if !d.spendOnTypes(labels) {
		return DropOverBudget, false
	}
	var set labelSet
	if labels.end != 0 {
		var reason DropReason
		var ok bool
		if set, reason, ok = d.labelSet(labels); !ok {
			return reason, false
		}
	}
	if fresh {
		d.internLocations()
	}
	d.keep(sample{stack: d.dict.Stacks.Intern(d.stack), attributes: set.attributes, link: set.link})
	return 0, true
}

// isKnown reports whether the location ids of a field are a whole stack that was met before. Where the
// ids of a sample go on in another field, the bytes of one field are not its stack.
func (d *decoder) isKnown(known *knownStack, f *field) bool {
	first := known.at.end == 0 && len(d.stack) == 0
	if first && f.wire == wireBytes && f.end > f.start {
		*known = d.stacks.find(d.data, span{uint32(f.start), uint32(f.end)})
		return known.index != 0
	}
	if known.index != 0 {
		d.stack = append(d.stack, d.dict.Stacks.At(known.index)...)
	}
	*known = knownStack{}
	return false
}

// takeLocations appends location ids to the stack: as the dictionary's index where the location is
// interned, else as a number below 0 that stands for its position. fresh tells that there is
// such a one.
func (d *decoder) takeLocations(f *field) (fresh bool, reason DropReason, ok bool) {
	if f.wire != wireVarint && f.wire != wireBytes {
		return false, DropMalformed, false
	}
	room := d.limits.MaxStackDepth - len(d.stack)
	if f.wire == wireVarint {
		if room == 0 {
			return false, DropStackTooDeep, false
		}
		i, reason, ok := d.locationOf(f.value)
		if !ok {
			return false, reason, false
		}
		d.stack = append(d.stack, i)
		return i < 0, 0, true
	}
	data := d.data[:f.end]
	size := f.end - f.start // an id takes a byte at least
	if size > room {
		if size = countVarints(data[f.start:]); size > room {
			return false, DropStackTooDeep, false
		}
	}
	stack := slices.Grow(d.stack, size)
	resolved := d.resolved
	for p := f.start; p < len(data); {
		id := uint64(data[p])
		if p++; id >= 0x80 {
			if id, p = varint(data, p-1); p < 0 {
				return false, DropMalformed, false
			}
		}
		if id < uint64(len(resolved)) && resolved[id] != 0 {
			// Fast path: the location was met before.
			stack = append(stack, resolved[id])
			continue
		}
		i, reason, ok := d.locationOf(id)
		if !ok {
			return false, reason, false
		}
		stack = append(stack, i)
		fresh = fresh || i < 0
	}
	d.stack = stack
	return fresh, 0, true
}

// locationOf gives the index of an interned location, or a number below 0 for the position of
// one that can be interned.
func (d *decoder) locationOf(id uint64) (int32, DropReason, bool) {
	position, ok := d.locationIDs.find(id)
	if !ok {
		return 0, DropUnknownLocation, false
	}
	i := d.locationIndices[position]
	if i == unresolved {
		i = broken
		if d.isReadable(&d.locations[position]) {
			i = readable
		}
		d.locationIndices[position] = i
	}
	switch i {
	case broken:
		return 0, DropUnknownString, false
	case readable:
		return freshLocation(position), 0, true
	default:
		return i, 0, true
	}
}

// freshLocation and freshPosition map positions to numbers below 0, and back.
func freshLocation(position int) int32 { return int32(-1 - position) }
func freshPosition(i int32) int        { return -1 - int(i) }

func (d *decoder) internLocations() {
	for k, i := range d.stack {
		if i >= 0 {
			continue
		}
		position := freshPosition(i)
		known := d.locationIndices[position]
		if known < 0 {
			known = d.location(position)
			if id := d.locations[position].id; id < uint64(len(d.resolved)) {
				d.resolved[id] = known
			}
		}
		d.stack[k] = known
	}
}

func (d *decoder) takeValues(f *field) bool {
	if f.wire == wireVarint {
		if d.valueCount++; d.valueCount <= d.maxValues {
			d.sampleValues = append(d.sampleValues, int64(f.value))
		}
		return true
	}
	if f.wire != wireBytes {
		return false
	}
	data := d.data[:f.end]
	count := d.valueCount
	for p := f.start; p < len(data); {
		v := uint64(data[p])
		if p++; v >= 0x80 {
			if v, p = varint(data, p-1); p < 0 {
				return false
			}
		}
		if count++; count <= d.maxValues {
			d.sampleValues = append(d.sampleValues, int64(v))
		}
	}
	d.valueCount = count
	return true
}

// freeTypes is how many sample types a sample may have before its values and labels count against the budget: each
// non-zero value becomes a sample of OTLP with attributes of its own, and a value that is missing becomes a zero.
const freeTypes = 16

// spendOnTypes reports whether the budget allows the sample to stand in the profiles of all its types.
func (d *decoder) spendOnTypes(labels span) bool {
	if d.valuesPerSample <= freeTypes {
		return true
	}
	missing := max(0, d.valuesPerSample-len(d.sampleValues)-freeTypes)
	copies := max(0, len(d.sampleValues)-freeTypes)
	return d.spend(8*missing + copies*int(labels.end-labels.start))
}

// keep adds a sample, or adds its values to those of the sample of the same identity. The first
// sample of a stack is found by the stack's index, which is all that most payloads need; the others
// of that stack, with other labels, by hash.
func (d *decoder) keep(s sample) {
	n := d.valuesPerSample
	d.fitValues(n)
	if d.delta.active {
		d.delta.apply(d.sampleValues)
	}
	if int(s.stack) == len(d.firstOfStack) {
		d.firstOfStack = append(d.firstOfStack, noSample)
	}
	first := d.firstOfStack[s.stack]
	if first == noSample {
		d.firstOfStack[s.stack] = int32(len(d.kept))
		d.appendSample(s)
		return
	}
	if d.kept[first] == s {
		d.combine(s, int(first))
		return
	}
	h := profiledict.Mix(uint64(uint32(s.stack))<<32|uint64(uint32(s.attributes)), uint64(uint32(s.link)))
	p := d.identities.Start(h)
	for e := d.identities.Next(&p); e != 0; e = d.identities.Next(&p) {
		if d.kept[e] == s {
			d.combine(s, int(e))
			return
		}
	}
	d.identities.Insert(p, int32(len(d.kept)))
	d.appendSample(s)
}

func (d *decoder) appendSample(s sample) {
	d.kept = append(d.kept, s)
	d.values = append(d.values, d.sampleValues...)
}

// combine adds the values to those of sample i, which has the same identity. A sum that does not fit
// stays apart rather than wrap around.
func (d *decoder) combine(s sample, i int) {
	n := d.valuesPerSample
	if !addAll(d.values[i*n:(i+1)*n], d.sampleValues) {
		d.appendSample(s)
	}
}

// fitValues makes the sample's values n: none at all where pprof names no sample types counts as 1
// (one observation), a missing one as 0, and more than there are types are left out.
func (d *decoder) fitValues(n int) {
	if len(d.sampleTypes) == 0 && len(d.sampleValues) == 0 {
		d.sampleValues = append(d.sampleValues, 1)
		return
	}
	if d.valueCount == n {
		return
	}
	d.stats.Repaired[RepairValueCount]++
	for len(d.sampleValues) < n {
		d.sampleValues = append(d.sampleValues, 0)
	}
}

// addAll adds values to sums, or nothing where one of the sums would overflow.
func addAll(sums, values []int64) bool {
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
