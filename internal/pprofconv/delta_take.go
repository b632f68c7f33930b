// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"math"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofscan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// deltaPass finds out what each sample of a payload has counted since the Baseline, before any of them
// is interned: what has not changed then costs no more than its fingerprint.
type deltaPass struct {
	fingerprints
	// active tells that this payload has cumulative types and a Baseline.
	active   bool
	baseline *Baseline
	atNanos  int64

	isCumulative []bool // by sample type
	columns      []int  // the sample types that are cumulative
	plan         []plannedSample
	current      plannedSample
	taken        int // samples that have something to say
	incomplete   bool

	// stacks are the distinct samples, sums what they have counted and deltas what of it is new:
	// a value for each of columns, stack after stack.
	stacks       []fingerprint
	sums, deltas []int64
	index        profiledict.HashIndex
	// matches[i] is the stack of this payload that was stack i of the last one.
	matches []int32

	// content is hashed from the payload, deltaContent from the last one too.
	content, deltaContent contentID
	// The time and duration of the profiles of cumulative types.
	fromNanos, forNanos uint64
}

// plannedSample is what is to become of one sample.
type plannedSample struct {
	// stack is the sample's number in stacks where it is the first of its kind, else noStack:
	// what several samples of one kind have counted is added up, and goes with the first.
	stack int32
	taken bool
}

const noStack = -1

// bytes is about what the pass's memory takes.
func (p *deltaPass) bytes() int {
	return pprofscan.BytesOf(p.strings) + pprofscan.BytesOf(p.fingerprints.mappings) + pprofscan.BytesOf(p.fingerprints.functions) +
		pprofscan.BytesOf(p.fingerprints.locations) + pprofscan.BytesOf(p.labelSets) + pprofscan.BytesOf(p.entry) + pprofscan.BytesOf(p.sample) +
		pprofscan.BytesOf(p.labels) + pprofscan.BytesOf(p.plan) + pprofscan.BytesOf(p.stacks) + pprofscan.BytesOf(p.sums) + pprofscan.BytesOf(p.deltas) + pprofscan.BytesOf(p.matches)
}

// shapeOf finds the cumulative types, and what values must share to be compared.
func (d *decoder) shapeOf() fingerprint {
	p := &d.delta
	p.isCumulative, p.columns = p.isCumulative[:0], p.columns[:0]
	b := p.sample[:0]
	text := func(i uint64) (raw []byte) {
		if i != 0 && d.hasString(i) {
			at := d.strings[i]
			raw = d.data[at.start:at.end]
			b = d.stringFingerprint(i).appendTo(b)
		} else {
			b = fingerprint{}.appendTo(b)
		}
		return raw
	}
	for t, v := range d.sampleTypes {
		p.isCumulative = append(p.isCumulative, isCumulative(text(v.typ)))
		if p.isCumulative[t] {
			p.columns = append(p.columns, t)
		}
		text(v.unit)
	}
	if len(d.sampleTypes) == 0 { // samples without a type are counted
		p.isCumulative, p.columns = append(p.isCumulative, true), append(p.columns, 0)
	}
	text(d.periodType.typ)
	text(d.periodType.unit)
	b = fingerprint{a: uint64(d.period)}.appendTo(b)
	p.sample = b
	return fingerprintOf(b)
}

// planDelta compares the payload, which has been scanned, with the Baseline, and leaves the snapshot that
// Commit takes over.
func (d *decoder) planDelta() {
	p := &d.delta
	p.fingerprints.reset(&d.scanned)
	now := snapshot{taken: true, shape: d.shapeOf(), payloadNanos: max(0, d.timeNanos), atNanos: p.atNanos}
	if len(p.columns) == 0 || len(d.sampleTypes)+len(d.samples) == 0 {
		return
	}
	p.active = true
	p.content = newContentID(d.data)
	repaired := d.stats.Repaired // what is repaired is counted where it is taken
	fits := d.planSamples()
	d.stats.Repaired = repaired
	now.content, now.incomplete = p.content, p.incomplete

	p.deltas = slices.Grow(p.deltas[:0], len(p.sums))[:len(p.sums)]
	last, stats := &p.baseline.last, &d.stats.Delta
	stats.Overflowed = !fits
	stats.First = fits && !last.taken
	if fits && last.taken {
		stats.Reason = p.restart(last, &now)
		stats.Restarted = stats.Reason != RestartNone
	}
	if stats.First || stats.Restarted || stats.Overflowed {
		clear(p.deltas)
	} else {
		p.subtract(last)
		p.fromNanos, p.forNanos = now.since(last)
		p.deltaContent = p.content.since(last.content)
	}
	p.markTaken()
	d.stats.Samples = len(d.samples) - d.stats.DroppedSamples()
	p.baseline.pending = p.snapshot(now, fits)
}

// planSamples adds up what the samples have counted, by their fingerprints. It counts those that cannot be
// understood. It gives false where there are more stacks than the Baseline may remember.
func (d *decoder) planSamples() (fits bool) {
	p := &d.delta
	p.plan = slices.Grow(p.plan[:0], len(d.samples))[:len(d.samples)]
	p.stacks, p.sums, p.incomplete = p.stacks[:0], p.sums[:0], false
	maxStacks := p.baseline.stacksOf(len(p.columns))
	p.index.Reset(min(len(d.samples), maxStacks))
	fits = true
	for i, at := range d.samples {
		planned := &p.plan[i]
		*planned = plannedSample{stack: noStack}
		print, reason, ok := d.sampleFingerprint(at)
		if !ok {
			d.stats.Dropped[reason]++
			p.incomplete = true
			continue
		}
		d.fitValues(d.valuesPerSample)
		for t, v := range d.sampleValues {
			planned.taken = planned.taken || v != 0 && !p.isCumulative[t]
		}
		if !fits {
			continue
		}
		stack, isNew := p.stackOf(print)
		if isNew {
			if len(p.stacks) > maxStacks {
				fits = false
				p.stacks, p.sums = p.stacks[:0], p.sums[:0]
				continue
			}
			planned.stack = int32(stack)
		}
		sums := p.sums[stack*len(p.columns):]
		for k, t := range p.columns {
			sums[k] = saturatingAdd(sums[k], d.sampleValues[t])
		}
	}
	if !fits {
		for i := range p.plan {
			p.plan[i].stack = noStack
		}
	}
	return fits
}

// stackOf gives the number of a fingerprint in stacks, where it adds it if it is not there.
func (p *deltaPass) stackOf(print fingerprint) (stack int, isNew bool) {
	probe := p.index.Start(print.a)
	for e := p.index.Next(&probe); e != 0; e = p.index.Next(&probe) {
		if p.stacks[e-1] == print {
			return int(e - 1), false
		}
	}
	p.stacks = append(p.stacks, print)
	p.sums = slices.Grow(p.sums, len(p.columns))[:len(p.sums)+len(p.columns)]
	clear(p.sums[len(p.sums)-len(p.columns):])
	p.index.Insert(probe, int32(len(p.stacks))) // HashIndex knows no entry 0
	return len(p.stacks) - 1, true
}

// saturatingAdd stops at the limits rather than wrap around: a value that stays there has no delta.
func saturatingAdd(a, b int64) int64 {
	switch sum := a + b; {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	default:
		return sum
	}
}
