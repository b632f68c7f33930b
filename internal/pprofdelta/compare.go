// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pprofdelta finds out what has happened since the last payload of an endpoint, whose values count from the start
// of the process. Comparison.Compare takes these steps, before anything of the payload is interned, so that what
// has not changed costs no more than its fingerprint:
//
//   - fingerprint each sample: a hash of the names in its stack and labels, since ids do not last (fingerprints.sample);
//   - add up the values of the samples that share one (sumSamples);
//   - compare them with those of the Baseline: a process that began anew shows in a value that fell or a stack that
//     vanished (restart);
//   - subtract (subtract), and mark the samples that have something new (markNew);
//   - leave a snapshot, which becomes the Baseline's when the profiles were delivered (Baseline.Commit).
package pprofdelta

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofscan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// Comparison is what is new in a payload since the last one.
type Comparison struct {
	// IsActive tells that the payload has cumulative types and a Baseline. If it does not, nothing else is set.
	IsActive bool
	// IsCumulative tells by sample type which values are what has happened since the last payload.
	IsCumulative []bool
	// NewSamples is the number of samples that have something new, Samples that of those that can be understood.
	NewSamples, Samples int
	Stats               Stats
	// Content is hashed from the payload, DeltaContent from the last one too.
	Content, DeltaContent pprofscan.ContentID
	// The time and duration of the profiles of cumulative types.
	FromNanos, ForNanos uint64

	fingerprints
	columns    []int // the sample types that are cumulative
	plan       []plannedSample
	incomplete bool // a sample cannot be understood

	// stacks are the distinct samples, sums what they have counted and deltas what of it is new:
	// a value for each of columns, stack after stack.
	stacks       []fingerprint
	sums, deltas []int64
	index        profiledict.HashIndex
	// matches[i] is the stack of this payload that was stack i of the last one.
	matches []int32
}

// plannedSample is what is to become of one sample.
type plannedSample struct {
	// stack is the sample's number in stacks where it is the first of its kind, else noStack:
	// what several samples of one kind have counted is added up, and goes with the first.
	stack int32
	isNew bool
}

const noStack = -1

// Compare compares the payload of a reader, which was fetched at this time, with the Baseline. It counts the samples
// that cannot be understood. Baseline.Commit makes the payload the last one.
func (c *Comparison) Compare(r *pprofscan.SampleReader, baseline *Baseline, at time.Time, counts *pprofscan.Counts) {
	p := r.Payload
	c.Reset()
	c.fingerprints.reset(r)
	now := snapshot{isTaken: true, shape: c.shape(), payloadNanos: max(0, p.TimeNanos)}
	if !at.IsZero() {
		now.atNanos = at.UnixNano()
	}
	if len(c.columns) == 0 || len(p.SampleTypes)+len(p.Samples) == 0 {
		return
	}
	c.IsActive = true
	c.Content = pprofscan.ContentIDOf(p.Data)
	fits := c.sumSamples(baseline.stacksOf(len(c.columns)), counts)
	now.content, now.incomplete = c.Content, c.incomplete

	c.deltas = slices.Grow(c.deltas[:0], len(c.sums))[:len(c.sums)]
	last := &baseline.last
	c.Stats.Overflowed = !fits
	c.Stats.First = fits && !last.isTaken
	if fits && last.isTaken {
		c.Stats.Reason = c.restart(last, &now)
		c.Stats.Restarted = c.Stats.Reason != RestartNone
	}
	if c.Stats != (Stats{}) {
		clear(c.deltas)
	} else {
		c.subtract(last)
		c.FromNanos, c.ForNanos = now.since(last)
		c.DeltaContent = deltaContent(c.Content, last.content)
	}
	c.markNew()
	baseline.pending = c.snapshot(now, fits)
}

// Reset forgets the payload.
func (c *Comparison) Reset() {
	c.payload, c.reader = nil, nil
	c.IsActive, c.incomplete, c.NewSamples, c.Samples, c.Stats = false, false, 0, 0, Stats{}
}

// Bytes estimates the memory in use.
func (c *Comparison) Bytes() int {
	return c.fingerprints.bytes() + pprofscan.BytesOf(c.plan) + pprofscan.BytesOf(c.stacks) + pprofscan.BytesOf(c.sums) +
		pprofscan.BytesOf(c.deltas) + pprofscan.BytesOf(c.matches)
}

// IsNew reports whether a sample has something new: a value of what is there now, or a delta.
func (c *Comparison) IsNew(sample int) bool { return c.plan[sample].isNew }

// IsEmpty reports whether there is nothing to emit: all types are cumulative, and none has anything new.
func (c *Comparison) IsEmpty() bool {
	return c.IsActive && c.NewSamples == 0 && len(c.columns) == len(c.IsCumulative)
}

// Apply puts the deltas of a sample in the place of its cumulative values.
func (c *Comparison) Apply(sample int, values []int64) {
	stack := int(c.plan[sample].stack)
	for k, t := range c.columns {
		values[t] = 0
		if stack != noStack {
			values[t] = c.deltas[stack*len(c.columns)+k]
		}
	}
}

// isCumulative reports whether values of a sample type count from the start of the process. In a payload that is
// compared with a Baseline all do, except those of what is there now: inuse_objects and
// inuse_space, and the objects and space of producers that know no other (gperftools, jemalloc, V8).
func isCumulative(typ []byte) bool {
	return !bytes.HasPrefix(typ, []byte("inuse")) &&
		string(typ) != "objects" && string(typ) != "space"
}

// shape finds the cumulative types, and what values must share to be compared.
func (c *Comparison) shape() fingerprint {
	p := c.payload
	c.IsCumulative, c.columns = c.IsCumulative[:0], c.columns[:0]
	b := c.buffer[:0]
	text := func(i uint64) (raw []byte) {
		if i != 0 && p.HasString(i) {
			at := p.Strings[i]
			raw = p.Data[at.Start:at.End]
			b = c.string(i).appendTo(b)
		} else {
			b = fingerprint{}.appendTo(b)
		}
		return raw
	}
	for t, v := range p.SampleTypes {
		c.IsCumulative = append(c.IsCumulative, isCumulative(text(v.Type)))
		if c.IsCumulative[t] {
			c.columns = append(c.columns, t)
		}
		text(v.Unit)
	}
	if len(p.SampleTypes) == 0 { // samples without a type are counted
		c.IsCumulative, c.columns = append(c.IsCumulative, true), append(c.columns, 0)
	}
	text(p.PeriodType.Type)
	text(p.PeriodType.Unit)
	b = fingerprint{a: uint64(p.Period)}.appendTo(b)
	c.buffer = b
	return fingerprintOf(b)
}

// sumSamples adds up what the samples have counted, by their fingerprints, and counts those that cannot be understood.
// It reports whether there are no more stacks than the Baseline may remember.
func (c *Comparison) sumSamples(maxStacks int, counts *pprofscan.Counts) (fits bool) {
	samples := c.payload.Samples
	c.Samples = len(samples)
	c.plan = slices.Grow(c.plan[:0], len(samples))[:len(samples)]
	c.stacks, c.sums = c.stacks[:0], c.sums[:0]
	c.index.Reset(min(len(samples), maxStacks))
	fits = true
	for i, at := range samples {
		planned := &c.plan[i]
		*planned = plannedSample{stack: noStack}
		key, reason, ok := c.sample(at)
		if !ok {
			counts.Dropped[reason]++
			c.Samples--
			c.incomplete = true
			continue
		}
		c.reader.FitValues() // what is repaired is counted where it is emitted
		for t, v := range c.reader.Values {
			planned.isNew = planned.isNew || v != 0 && !c.IsCumulative[t]
		}
		if !fits {
			continue
		}
		stack, isNew := c.stackOf(key)
		if isNew {
			if len(c.stacks) > maxStacks {
				fits = false
				c.stacks, c.sums = c.stacks[:0], c.sums[:0]
				continue
			}
			planned.stack = int32(stack)
		}
		sums := c.sums[stack*len(c.columns):]
		for k, t := range c.columns {
			sums[k] = saturatingAdd(sums[k], c.reader.Values[t])
		}
	}
	if !fits {
		for i := range c.plan {
			c.plan[i].stack = noStack
		}
	}
	return fits
}

// stackOf returns the number of a fingerprint in stacks, and adds it if it is not there.
func (c *Comparison) stackOf(key fingerprint) (stack int, isNew bool) {
	probe := c.index.Start(key.a)
	for e := c.index.Next(&probe); e != 0; e = c.index.Next(&probe) {
		if c.stacks[e-1] == key {
			return int(e - 1), false
		}
	}
	c.stacks = append(c.stacks, key)
	c.sums = slices.Grow(c.sums, len(c.columns))[:len(c.sums)+len(c.columns)]
	clear(c.sums[len(c.sums)-len(c.columns):])
	c.index.Insert(probe, int32(len(c.stacks))) // HashIndex knows no entry 0
	return len(c.stacks) - 1, true
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

// restart looks for what cannot be in a payload of the process that gave the last one. It notes which
// stack was which.
func (c *Comparison) restart(last, now *snapshot) RestartReason {
	if now.shape != last.shape {
		return RestartTypesChanged
	}
	if now.payloadNanos != 0 && now.payloadNanos < last.payloadNanos {
		return RestartTimeWentBack
	}
	n := len(c.columns)
	c.matches = slices.Grow(c.matches[:0], len(last.stacks))[:len(last.stacks)]
	vanished := false
	next := int32(0)
	for i, key := range last.stacks {
		// Most producers keep their order, so that the stack after the last one is the next one.
		match := next
		if int(match) >= len(c.stacks) || c.stacks[match] != key {
			match = c.find(key)
		}
		c.matches[i] = match
		if match == noStack {
			vanished = true
			continue
		}
		next = match + 1
		sums := c.sums[int(match)*n : int(match)*n+n]
		for k, before := range last.values[i*n : i*n+n] {
			if fell(before, sums[k]) {
				return RestartValueFell
			}
		}
	}
	// Where samples were dropped, the stack may have been one of them.
	if vanished && !now.incomplete {
		return RestartStackVanished
	}
	return RestartNone
}

// fell reports whether a value is below the one before. Go's heap values are floating-point products
// (scaleHeapSample), which keep their order below 2^53; above that, rounding may take back a unit in the last place.
func fell(before, now int64) bool {
	return now < before && now < before-before>>50
}

func (c *Comparison) find(key fingerprint) int32 {
	probe := c.index.Start(key.a)
	for e := c.index.Next(&probe); e != 0; e = c.index.Next(&probe) {
		if c.stacks[e-1] == key {
			return e - 1
		}
	}
	return noStack
}

// subtract sets deltas to what is new since the last payload, once restart has found nothing.
func (c *Comparison) subtract(last *snapshot) {
	if last.incomplete {
		clear(c.deltas) // a stack that the last payload does not have may have been one that was dropped
	} else {
		for i, sum := range c.sums {
			c.deltas[i] = max(0, sum)
		}
	}
	n := len(c.columns)
	for i, match := range c.matches {
		if match == noStack {
			continue
		}
		for k, before := range last.values[i*n : i*n+n] {
			at := int(match)*n + k
			now := max(c.sums[at], before) // what rounding took back is not new when it returns
			c.sums[at], c.deltas[at] = now, 0
			if before >= 0 {
				c.deltas[at] = now - before
			}
		}
	}
}

// markNew finds the samples that have something new: a value of what is there now, or a delta.
func (c *Comparison) markNew() {
	n := len(c.columns)
	c.NewSamples = 0
	for i := range c.plan {
		planned := &c.plan[i]
		if planned.stack != noStack {
			at := int(planned.stack) * n
			for _, delta := range c.deltas[at : at+n] {
				planned.isNew = planned.isNew || delta != 0
			}
		}
		if planned.isNew {
			c.NewSamples++
		}
	}
}

// snapshot is what the next payload is compared with: the stacks that have counted anything. One that is
// absent has counted 0.
func (c *Comparison) snapshot(now snapshot, fits bool) *snapshot {
	s := snapshots.Get().(*snapshot)
	stacks, values := s.stacks[:0], s.values[:0]
	*s = now
	if !fits {
		*s = snapshot{}
	}
	n := len(c.columns)
	for i, key := range c.stacks {
		sums := c.sums[i*n : i*n+n]
		if slices.ContainsFunc(sums, func(v int64) bool { return v != 0 }) {
			stacks, values = append(stacks, key), append(values, sums...)
		}
	}
	s.stacks, s.values = stacks, values
	return s
}

// since returns the time and duration of what happened between two payloads: by their own clock, or by the
// caller's if they have none or it did not move.
func (s *snapshot) since(last *snapshot) (timeNanos, durationNanos uint64) {
	switch {
	case last.payloadNanos != 0 && s.payloadNanos > last.payloadNanos:
		return uint64(last.payloadNanos), uint64(s.payloadNanos - last.payloadNanos)
	case last.atNanos > 0 && s.atNanos > last.atNanos:
		return uint64(last.atNanos), uint64(s.atNanos - last.atNanos)
	default:
		return uint64(last.payloadNanos), 0
	}
}

// deltaContent returns the id of what happened between two payloads: another one for each pair of them.
func deltaContent(id, last pprofscan.ContentID) pprofscan.ContentID {
	var text [2 * len(id)]byte
	copy(text[:], id[:])
	copy(text[len(id):], last[:])
	var out pprofscan.ContentID
	binary.BigEndian.PutUint64(out[:8], xxhash.Sum64(text[:]))
	binary.BigEndian.PutUint64(out[8:], xxhash.Sum64(text[1:]))
	return out
}
