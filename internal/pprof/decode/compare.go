// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// comparison finds what has happened since the last payload of an endpoint, whose values count from the start of the
// process. compare goes through these steps before anything of the payload is interned, so that what has not changed
// costs no more
// than its fingerprint:
//
//   - fingerprint each sample: a hash of the names in its stack and labels, since ids do not last
//     (fingerprints.sample); - add up the values of the samples with the same fingerprint (sumSamples); - compare them
//     with those of the Baseline: if a value fell or a stack vanished, the process has restarted (restart); - subtract
//     (subtract), and mark the samples that have something new (markNew); - make a snapshot, which becomes the
//     Baseline's when the profiles are delivered (Baseline.Commit).
type comparison struct {
	// isActive tells that there are a Baseline and cumulative types. If not, nothing else is set.
	isActive bool
	// isCumulative tells for each sample type whether its values become what has happened since the last payload.
	isCumulative []bool
	// newSamples is the number of samples that have something new, samples that of those that can be read.
	newSamples, samples int
	stats               DeltaStats
	// content is a hash of the payload, deltaContent of the payload and the last one.
	content, deltaContent otlp.ContentID
	// The time and duration of the profiles of cumulative types.
	fromNanos, forNanos uint64

	fingerprints
	columns      []int // the sample types that are cumulative
	plan         []plannedSample
	isIncomplete bool // some sample cannot be read

	// stacks has the fingerprints of the distinct samples, sums what they have counted and deltas what of it is new:
	// a value for each of columns, stack after stack. Stack 0 means no stack; its values are 0.
	stacks       dictionary.Table[int32, fingerprint]
	sums, deltas []int64
	// matches[i] is the stack of this payload that was stack i of the last one, or 0.
	matches []int32
}

// plannedSample is what becomes of one sample.
type plannedSample struct {
	// stack is the sample's number in stacks if it is the first of its kind, otherwise 0:
	// what several samples of one kind have counted is added up, and goes with the first.
	stack int32
	isNew bool
}

// compare compares the payload of a reader with the Baseline. It counts the samples
// that cannot be read. Baseline.Commit makes the payload the last one. The error is that of the Meter.
func (c *comparison) compare(r *scan.SampleReader, opts *Options, counts *scan.Counts) error {
	p, baseline, at, meter := r.Payload, opts.Baseline, opts.At, opts.Meter
	c.forget()
	c.fingerprints.reset(r)
	now := snapshot{exists: true, shape: c.shape(opts.Temporality),
		payloadNanos: max(0, int64(p.Numbers[scan.ProfileTimeNanos]))}
	if !at.IsZero() {
		now.atNanos = at.UnixNano()
	}
	if len(c.columns) == 0 || len(p.SampleTypes)+len(p.Samples) == 0 {
		return nil
	}
	c.isActive = true
	c.content = contentID(p.Data)
	fits, err := c.sumSamples(baseline.stacksOf(len(c.columns)), meter, counts)
	if err != nil {
		return err
	}
	now.content, now.isIncomplete = c.content, c.isIncomplete

	c.deltas = slices.Grow(c.deltas[:0], len(c.sums))[:len(c.sums)]
	last := &baseline.last
	c.stats.Overflowed = !fits
	c.stats.First = fits && !last.exists
	if fits && last.exists {
		c.stats.Reason = c.restart(last, &now)
		c.stats.Restarted = c.stats.Reason != RestartNone
	}
	if c.stats != (DeltaStats{}) {
		clear(c.deltas)
	} else {
		c.subtract(last)
		c.fromNanos, c.forNanos = now.since(last)
		c.deltaContent = c.content // another id for each pair of payloads
		c.deltaContent.AddNumber(last.content[0])
		c.deltaContent.AddNumber(last.content[1])
	}
	c.markNew()
	baseline.pending = c.snapshot(now, fits)
	return nil
}

func (c *comparison) forget() {
	c.release()
	c.isActive, c.isIncomplete, c.newSamples, c.samples, c.stats = false, false, 0, 0, DeltaStats{}
}

// bytes estimates the memory in use.
func (c *comparison) bytes() int {
	return c.fingerprints.bytes() + dictionary.BytesOf(c.plan) + c.stacks.MemoryBytes() + dictionary.BytesOf(c.sums) +
		dictionary.BytesOf(c.deltas) + dictionary.BytesOf(c.matches)
}

// isNew reports whether a sample has something new: a delta, or a value of a type that is not cumulative.
func (c *comparison) isNew(sample int) bool { return c.plan[sample].isNew }

// isEmpty reports whether there is nothing to emit: all types are cumulative, and none has anything new.
func (c *comparison) isEmpty() bool {
	return c.isActive && c.newSamples == 0 && len(c.columns) == len(c.isCumulative)
}

// apply replaces the cumulative values of a sample with their deltas.
func (c *comparison) apply(sample int, values []int64) {
	stack := int(c.plan[sample].stack)
	for k, t := range c.columns {
		values[t] = c.deltas[stack*len(c.columns)+k]
	}
}

// shape finds the cumulative types, and returns what payloads must share to be compared.
func (c *comparison) shape(temporality kind.Temporality) fingerprint {
	p := c.payload
	c.isCumulative, c.columns = c.isCumulative[:0], c.columns[:0]
	b := c.buffer[:0]
	// stringOf returns the beginning of a string, as much as names have.
	stringOf := func(i uint64) string {
		const longest = 64
		var raw []byte
		var s fingerprint
		if i != 0 && p.HasString(i) {
			at := p.Strings[i]
			raw, s = p.Data[at.Start:min(at.End, at.Start+longest)], c.string(i)
		}
		b = s.appendTo(b)
		return string(raw)
	}
	periodType := stringOf(p.PeriodType.Type)
	stringOf(p.PeriodType.Unit)
	for t, v := range p.SampleTypes {
		declared := kind.Declared{SampleType: stringOf(v.Type), Unit: stringOf(v.Unit), PeriodType: periodType}
		c.isCumulative = append(c.isCumulative, temporality.ValuesOf(declared) == kind.Cumulative)
		if c.isCumulative[t] {
			c.columns = append(c.columns, t)
		}
	}
	if len(p.SampleTypes) == 0 { // samples without a type are counted
		c.isCumulative, c.columns = append(c.isCumulative, true), append(c.columns, 0)
	}
	b = fingerprint{a: p.Numbers[scan.ProfilePeriod]}.appendTo(b)
	c.buffer = b
	return fingerprintOf(b)
}

// sumSamples adds up what the samples have counted, by their fingerprints, and counts those that cannot be read.
// It reports whether the Baseline may remember that many stacks.
func (c *comparison) sumSamples(maxStacks int, meter *size.Meter, counts *scan.Counts) (fits bool, err error) {
	const checkEvery = 1 << 10
	samples := c.payload.Samples
	c.samples = len(samples)
	c.plan = slices.Grow(c.plan[:0], len(samples))[:len(samples)]
	c.resetStacks(min(len(samples), maxStacks))
	fits = true
	for i, at := range samples {
		if i%checkEvery == 0 {
			if err := meter.Check(); err != nil {
				return false, err
			}
		}
		planned := &c.plan[i]
		*planned = plannedSample{}
		key, reason, ok := c.sample(at)
		if !ok {
			counts.Dropped[reason]++
			c.samples--
			c.isIncomplete = true
			continue
		}
		c.reader.FitValues() // repairs of emitted samples are counted when these are read again
		for t, v := range c.reader.Values {
			planned.isNew = planned.isNew || v != 0 && !c.isCumulative[t]
		}
		if !fits {
			continue
		}
		stack := c.stacks.Intern(key.a, key)
		if n := int(stack) * len(c.columns); n == len(c.sums) { // a new one
			if int(stack) > maxStacks {
				fits = false
				c.resetStacks(0)
				continue
			}
			planned.stack = stack
			c.addSums()
		}
		sums := c.sums[int(stack)*len(c.columns):]
		for k, t := range c.columns {
			sums[k] = otlp.SaturatingAdd(sums[k], c.reader.Values[t])
		}
	}
	if !fits {
		for i := range c.plan {
			c.plan[i].stack = 0
		}
	}
	return fits, nil
}

func (c *comparison) resetStacks(stacks int) {
	c.stacks.Reset(stacks)
	c.sums = c.sums[:0]
	c.addSums()
}

func (c *comparison) addSums() {
	n := len(c.sums)
	c.sums = slices.Grow(c.sums, len(c.columns))[:n+len(c.columns)]
	clear(c.sums[n:])
}

// restart looks for signs that another process than before wrote the payload. It finds the stacks of the last payload.
func (c *comparison) restart(last, now *snapshot) RestartReason {
	if now.shape != last.shape {
		return RestartTypesChanged
	}
	if now.payloadNanos != 0 && now.payloadNanos < last.payloadNanos {
		return RestartTimeWentBack
	}
	n := len(c.columns)
	c.matches = slices.Grow(c.matches[:0], len(last.stacks))[:len(last.stacks)]
	hasVanished := false
	next := int32(1)
	for i, key := range last.stacks {
		// Most producers keep their order, so that the stack after the last match is the next one.
		match := next
		if int(match) >= c.stacks.Len() || c.stacks.At(match) != key {
			match = c.stacks.Lookup(key.a, key)
		}
		c.matches[i] = match
		if match == 0 {
			hasVanished = true
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
	// If samples were dropped, the stack may have been one of them.
	if hasVanished && !now.isIncomplete {
		return RestartStackVanished
	}
	return RestartNone
}

// fell reports whether a value is below the one before. Go's heap values are floating-point products
// (scaleHeapSample), which keep their order below 2^53; above that, rounding may lower one by a unit in the last place.
func fell(before, now int64) bool {
	return now < before && now < before-before>>50
}

// subtract sets deltas to what is new since the last payload. restart must have found nothing.
func (c *comparison) subtract(last *snapshot) {
	if last.isIncomplete {
		clear(c.deltas) // a stack that the last payload does not have may have been dropped
	} else {
		for i, sum := range c.sums {
			c.deltas[i] = max(0, sum)
		}
	}
	n := len(c.columns)
	for i, match := range c.matches {
		if match == 0 {
			continue
		}
		for k, before := range last.values[i*n : i*n+n] {
			at := int(match)*n + k
			now := max(c.sums[at], before) // what rounding has lowered is not new when it rises again
			c.sums[at], c.deltas[at] = now, 0
			if before >= 0 {
				c.deltas[at] = now - before
			}
		}
	}
}

// markNew marks the samples that have a delta. sumSamples has marked those with values of other types.
func (c *comparison) markNew() {
	n := len(c.columns)
	c.newSamples = 0
	for i := range c.plan {
		planned := &c.plan[i]
		at := int(planned.stack) * n
		for _, delta := range c.deltas[at : at+n] {
			planned.isNew = planned.isNew || delta != 0
		}
		if planned.isNew {
			c.newSamples++
		}
	}
}

// snapshot returns what the next payload is compared with: the stacks that have counted anything. One that is
// absent has counted 0.
func (c *comparison) snapshot(now snapshot, fits bool) *snapshot {
	s := snapshots.Get().(*snapshot)
	stacks, values := s.stacks[:0], s.values[:0]
	*s = now
	if !fits {
		*s = snapshot{}
	}
	n := len(c.columns)
	for i := range c.stacks.Len() {
		sums := c.sums[i*n : i*n+n]
		if slices.ContainsFunc(sums, func(v int64) bool { return v != 0 }) {
			stacks, values = append(stacks, c.stacks.At(int32(i))), append(values, sums...)
		}
	}
	s.stacks, s.values = stacks, values
	return s
}

// since returns the time and duration of what happened between two payloads: by their own clock, or by the
// caller's if they have no times or the same one.
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
