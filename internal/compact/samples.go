// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// shape is which of its two lists a sample uses. Samples of one profile have one shape.
type shape uint8

const (
	valuesAlone shape = 1 << iota
	timestampsAlone
	timestampsValues

	anyShape = shape(0)
)

var shapes = [...]shape{valuesAlone, timestampsAlone, timestampsValues}

// shapeOf returns the shape of a sample with so many values and timestamps, or why the sample is dropped.
func shapeOf(values, timestamps int) (shape, DropReason, bool) {
	switch {
	case timestamps == 0 && values == 1:
		return valuesAlone, 0, true
	case timestamps == 0 && values == 0:
		return 0, DropNoObservation, false
	case timestamps == 0:
		return 0, DropSeveralValues, false
	case values == 0:
		return timestampsAlone, 0, true
	case values == timestamps:
		return timestampsValues, 0, true
	default:
		return 0, DropLengths, false
	}
}

// addSamples adds a profile with its samples of one shape, and returns the other shapes that occur.
// With anyShape, that is the shape of the first sample that has one, and samples without one are counted.
func (b *Batch) addSamples(p profile, src pprofile.SampleSlice, want shape) (others shape) {
	first := want == anyShape
	p.first = int32(len(b.samples))
	b.identities.begin(p.first)
	for i := range src.Len() {
		from := src.At(i)
		values := from.Values().Len()
		shape, why, ok := shapeOf(values, from.TimestampsUnixNano().Len())
		if !ok {
			if first {
				b.stats.Dropped[why]++
			}
			continue
		}
		if want == anyShape {
			want = shape
		}
		if shape != want {
			others |= shape
			continue
		}
		b.addSample(from, shape)
	}
	p.shape = want
	if want&(timestampsAlone|timestampsValues) != 0 {
		b.gatherObservations(p.first, src, want)
	}
	p.count = int32(len(b.samples)) - p.first
	b.profiles = append(b.profiles, p)
	return others
}

// addSample adds one sample, or a value alone to the sample of the same identity. Observations with
// timestamps are only counted here; gatherObservations fetches them when it is known how many a sample has.
func (b *Batch) addSample(from pprofile.Sample, shape shape) {
	stack, why := b.importer.Stack(from.StackIndex())
	if why != 0 {
		b.stats.Dropped[dropReason(why)]++
		b.identities.skip(shape)
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
	if shape != valuesAlone {
		if !known {
			b.samples = append(b.samples, sample{Identity: id})
		}
		b.samples[at].count += uint32(from.TimestampsUnixNano().Len())
		b.identities.record(at)
		return
	}
	value := from.Values().At(0)
	if known {
		sum := &b.values[b.samples[at].firstValue]
		if !overflows(*sum, value) {
			*sum += value
			return
		}
		// A sum that does not fit stays apart rather than wrap around.
	}
	b.samples = append(b.samples, sample{Identity: id, firstValue: uint32(len(b.values)), count: 1})
	b.values = append(b.values, value)
}

func overflows(a, b int64) bool {
	return b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b
}

// gatherObservations copies the timestamps, and the values beside them, of the samples from first on, so that
// those of one sample lie together in the order they came in.
func (b *Batch) gatherObservations(first int32, src pprofile.SampleSlice, want shape) {
	total := uint32(0)
	for i := int(first); i < len(b.samples); i++ {
		s := &b.samples[i]
		s.firstTimestamp = uint32(len(b.timestamps)) + total
		s.firstValue = uint32(len(b.values)) + total
		total += s.count
		s.count = 0 // counts up again while they are copied
	}
	b.timestamps = append(b.timestamps, make([]uint64, total)...)
	if want == timestampsValues {
		b.values = append(b.values, make([]int64, total)...)
	}
	targets := b.identities.targets
	for i := range src.Len() {
		from := src.At(i)
		timestamps, values := from.TimestampsUnixNano(), from.Values()
		if shape, _, ok := shapeOf(values.Len(), timestamps.Len()); !ok || shape != want {
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
		if want == timestampsValues {
			to := b.values[s.firstValue+s.count:]
			for k := range values.Len() {
				to[k] = values.At(k)
			}
		}
		s.count += uint32(timestamps.Len())
	}
}

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

// find returns the sample of an identity, or where to append it.
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
