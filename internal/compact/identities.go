// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import "github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"

// identities finds a profile's sample of an identity. The first sample of a stack is found by the
// stack's index, which is all that most profiles need; the others of that stack, which differ in their
// attributes or link, by hash.
type identities struct {
	// firstOfStack[i] is the first sample of stack i. Below start it is another profile's.
	firstOfStack []int32
	start        int32
	others       profiledict.HashIndex
	inOthers     int
	// targets are, for the samples with timestamps in the order they came in, where they went; unknown for
	// one that was dropped.
	targets []int32
}

// begin turns to a profile whose samples begin at start.
func (d *identities) begin(start int32) {
	if start == 0 {
		d.firstOfStack = d.firstOfStack[:0]
	}
	d.start = start
	if d.inOthers > 0 {
		d.others.Reset(d.inOthers) // the next profile is likely to need as much room
		d.inOthers = 0
	}
	d.targets = d.targets[:0]
}

// find gives the sample of an identity, or where to append it.
func (d *identities) find(samples []sample, id Identity) (at int32, known bool) {
	next := int32(len(samples))
	for int(id.Stack) >= len(d.firstOfStack) {
		d.firstOfStack = append(d.firstOfStack, unknown)
	}
	first := d.firstOfStack[id.Stack]
	if first < d.start {
		d.firstOfStack[id.Stack] = next
		return next, false
	}
	if samples[first].Identity == id {
		return first, true
	}
	h := profiledict.Mix(uint64(uint32(id.Stack))<<32|uint64(uint32(id.Attributes)), uint64(uint32(id.Link)))
	p := d.others.Start(h)
	for e := d.others.Next(&p); e != 0; e = d.others.Next(&p) {
		if samples[e].Identity == id {
			return e, true
		}
	}
	d.others.Insert(p, next)
	d.inOthers++
	return next, false
}

// record notes where a sample with timestamps went.
func (d *identities) record(at int32) { d.targets = append(d.targets, at) }

// skip notes that a sample was dropped.
func (d *identities) skip(shape shape) {
	if shape != valuesAlone {
		d.targets = append(d.targets, unknown)
	}
}
