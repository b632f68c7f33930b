// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"math"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// sample is what identifies a sample in OTLP.
type sample struct {
	stack      dictionary.StackIndex
	attributes dictionary.AttributeSetIndex
	link       dictionary.LinkIndex
}

// noSample marks a stack without a sample yet.
const noSample = -1

// sampleTable holds the samples of a payload, each identity once, with the values of all sample types.
type sampleTable struct {
	entries []sample
	// firstOfStack is the first sample of each stack, identities finds the others.
	// Sample 0 is the first of its stack, so that HashIndex need not know an entry 0.
	firstOfStack []int32
	identities   dictionary.HashIndex
	// values are those of entries, one after another, perSample each.
	values    []int64
	perSample int
}

// reset makes room for so many samples of perSample values each, and no more than values in all.
func (t *sampleTable) reset(samples, perSample, values int) {
	t.perSample = perSample
	t.identities.Reset(0)
	t.entries = slices.Grow(t.entries[:0], samples)
	t.values = slices.Grow(t.values[:0], min(samples*perSample, values))
	t.firstOfStack = append(slices.Grow(t.firstOfStack[:0], samples+1), noSample) // the empty stack is always there
}

// bytes estimates the memory in use.
func (t *sampleTable) bytes() int {
	return scan.BytesOf(t.entries) + scan.BytesOf(t.firstOfStack) + scan.BytesOf(t.values)
}

// add adds a sample, or adds its values to those of the sample of the same identity. The first
// sample of a stack is found by the stack's index, which is all that most payloads need; the others
// of that stack, with other labels, by hash.
func (t *sampleTable) add(s sample, values []int64) {
	for int(s.stack) >= len(t.firstOfStack) { // timed samples have stacks too
		t.firstOfStack = append(t.firstOfStack, noSample)
	}
	first := t.firstOfStack[s.stack]
	if first == noSample {
		t.firstOfStack[s.stack] = int32(len(t.entries))
		t.append(s, values)
		return
	}
	if t.entries[first] == s {
		t.combine(s, int(first), values)
		return
	}
	h := dictionary.Mix(uint64(uint32(s.stack))<<32|uint64(uint32(s.attributes)), uint64(uint32(s.link)))
	p := t.identities.Start(h)
	for e := t.identities.Next(&p); e != 0; e = t.identities.Next(&p) {
		if t.entries[e] == s {
			t.combine(s, int(e), values)
			return
		}
	}
	t.identities.Insert(p, int32(len(t.entries)))
	t.append(s, values)
}

func (t *sampleTable) append(s sample, values []int64) {
	t.entries = append(t.entries, s)
	t.values = append(t.values, values...)
}

// combine adds the values to those of sample i, which has the same identity. If a sum would overflow, they become another
// sample.
func (t *sampleTable) combine(s sample, i int, values []int64) {
	if !addAll(t.of(i), values) {
		t.append(s, values)
	}
}

// of returns the values of sample i.
func (t *sampleTable) of(i int) []int64 { return t.values[i*t.perSample : (i+1)*t.perSample] }

// has reports whether a sample has a value of type v.
func (t *sampleTable) has(v int) bool {
	for at := v; at < len(t.values); at += t.perSample {
		if t.values[at] != 0 {
			return true
		}
	}
	return false
}

// isIn reports whether sample i is in the profile of type v. One that is 0 for all types is in the first profile, so that
// nothing is lost.
func (t *sampleTable) isIn(i, v int, isFirst bool) bool { return isIn(t.of(i), v, isFirst) }

func isIn(values []int64, v int, isFirst bool) bool {
	if len(values) == 1 || values[v] != 0 {
		return true
	}
	if !isFirst {
		return false
	}
	for _, v := range values {
		if v != 0 {
			return false
		}
	}
	return true
}

// addAll adds values to sums. If one of the sums would overflow, it adds nothing and returns false.
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
