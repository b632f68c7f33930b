// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Shape is what the observations of a profile have: a timestamp, a value, or both.
type Shape struct{ Timestamps, Values bool }

var (
	shapes   = []Shape{{Values: true}, {Timestamps: true}, {Timestamps: true, Values: true}}
	anyShape = Shape{}
)

// shapeOf returns the shape of a sample with so many values and timestamps, or why the sample is dropped.
func shapeOf(values, timestamps int) (Shape, DropReason) {
	switch {
	case timestamps == 0 && values == 0:
		return Shape{}, DropNoObservation
	case timestamps == 0 && values > 1:
		return Shape{}, DropSeveralValues
	case timestamps > 0 && values > 0 && values != timestamps:
		return Shape{}, DropLengths
	default:
		return Shape{Timestamps: timestamps > 0, Values: values > 0}, Understood
	}
}

// addSamples adds a profile with its samples of one shape, and returns the other shapes that occur. anyShape means the shape
// of the first sample that has one; samples without a shape are then counted as dropped.
func (b *Batch) addSamples(p profile, src pprofile.SampleSlice, want Shape) (others []Shape) {
	first := want == anyShape
	p.first = int32(len(b.samples))
	b.identities.begin(p.first)
	for i := range src.Len() {
		from := src.At(i)
		shape, why := shapeOf(from.Values().Len(), from.TimestampsUnixNano().Len())
		if why != Understood {
			if first {
				b.stats.Dropped[why]++
			}
			continue
		}
		if want == anyShape {
			want = shape
		}
		if shape != want {
			if !slices.Contains(others, shape) {
				others = append(others, shape)
			}
			continue
		}
		b.addSample(from, shape)
	}
	p.shape = want
	if want.Timestamps {
		b.gatherObservations(p.first, src, want)
	}
	p.count = int32(len(b.samples)) - p.first
	b.profiles = append(b.profiles, p)
	return others
}

// addSample adds a sample, or adds its value to that of the sample with the same identity. It only counts observations
// with timestamps: gatherObservations copies them when the number of each sample's observations is known.
func (b *Batch) addSample(from pprofile.Sample, shape Shape) {
	stack, why := b.importer.Stack(from.StackIndex())
	if why != Understood {
		b.stats.Dropped[why]++
		if shape.Timestamps {
			b.identities.targets = append(b.identities.targets, unknown)
		}
		return
	}
	id := Identity{
		Stack:      stack,
		Attributes: b.importer.AttributeSet(from.AttributeIndices()),
		Link:       b.importer.Link(from.LinkIndex()),
	}
	at, known := int32(len(b.samples)), false
	if b.options.CombineSamples {
		at, known = b.identities.find(b.samples, id)
	}
	if shape.Timestamps {
		if !known {
			b.samples = append(b.samples, sample{Identity: id})
		}
		b.samples[at].count += uint32(from.TimestampsUnixNano().Len())
		b.identities.targets = append(b.identities.targets, at)
		return
	}
	value := from.Values().At(0)
	if known {
		sum := &b.values[b.samples[at].firstValue]
		if !overflows(*sum, value) {
			*sum += value
			return
		}
		// The sum would overflow, so the value becomes a sample of its own.
	}
	b.samples = append(b.samples, sample{Identity: id, firstValue: uint32(len(b.values)), count: 1})
	b.values = append(b.values, value)
}

func overflows(a, b int64) bool {
	return b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b
}

// gatherObservations copies the timestamps, and values if there are any, of the samples from first on, so that those of
// each sample are consecutive and in their original order.
func (b *Batch) gatherObservations(first int32, src pprofile.SampleSlice, want Shape) {
	total := uint32(0)
	for i := int(first); i < len(b.samples); i++ {
		s := &b.samples[i]
		s.firstTimestamp = uint32(len(b.timestamps)) + total
		s.firstValue = uint32(len(b.values)) + total
		total += s.count
		s.count = 0 // counts up again while they are copied
	}
	b.timestamps = append(b.timestamps, make([]uint64, total)...)
	if want.Values {
		b.values = append(b.values, make([]int64, total)...)
	}
	targets := b.identities.targets
	for i := range src.Len() {
		from := src.At(i)
		timestamps, values := from.TimestampsUnixNano(), from.Values()
		if shape, _ := shapeOf(values.Len(), timestamps.Len()); shape != want {
			continue
		}
		at := targets[0]
		targets = targets[1:]
		if at == unknown {
			continue
		}
		s := &b.samples[at]
		to := b.timestamps[s.firstTimestamp+s.count:]
		for k := range timestamps.Len() {
			to[k] = timestamps.At(k)
		}
		if want.Values {
			to := b.values[s.firstValue+s.count:]
			for k := range values.Len() {
				to[k] = values.At(k)
			}
		}
		s.count += uint32(timestamps.Len())
	}
}

// identities finds the sample of a profile that has a given identity: the first sample of each stack by the stack's index,
// which is all that most profiles need, and its other samples, which differ in attributes or link, by hash.
type identities struct {
	// firstOfStack[i] is the first sample of stack i. If it is less than start, it belongs to another profile.
	firstOfStack []int32
	start        int32
	others       dictionary.HashIndex
	inOthers     int
	// targets has, for each incoming sample with timestamps, the sample to which it was added, or unknown if it was
	// dropped.
	targets []int32
}

// begin starts a profile whose samples begin at start.
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

// find returns the index of the sample with an identity, or, if there is none, the index at which the caller appends it.
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
	h := dictionary.Mix(uint64(uint32(id.Stack))<<32|uint64(uint32(id.Attributes)), uint64(uint32(id.Link)))
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
