// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
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

// shapeOf returns the shape of a sample with these numbers of values and timestamps, or why the sample is dropped.
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

// addSamples adds a profile with its samples of one shape, and returns the other shapes that occur. anyShape means the
// shape of the first sample that has one; samples without a shape are then counted as dropped.
func (b *Batch) addSamples(p profile, src pprofile.SampleSlice, want Shape) (others []Shape) {
	first := want == anyShape
	p.first = int32(len(b.samples.Entries))
	b.samples.Begin()
	b.targets = b.targets[:0]
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
	p.count = int32(len(b.samples.Entries)) - p.first
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
			b.targets = append(b.targets, unknown)
		}
		return
	}
	id := Identity{
		Stack:      stack,
		Attributes: b.importer.AttributeSet(from.AttributeIndices()),
		Link:       b.importer.Link(from.LinkIndex()),
	}
	var at int32
	isNew := true
	if b.options.CombineSamples {
		at, isNew = b.samples.Intern(0, id)
	} else {
		at = b.samples.Append(0, id)
	}
	if shape.Timestamps {
		b.samples.Entries[at].Observed.count += uint32(from.TimestampsUnixNano().Len())
		b.targets = append(b.targets, at)
		return
	}
	value := []int64{from.Values().At(0)}
	if !isNew {
		sum := b.samples.Entries[at].Observed.firstValue
		if dictionary.AddAll(b.values[sum:sum+1], value) {
			return
		}
		at = b.samples.Append(0, id) // the sum would overflow
	}
	b.samples.Entries[at].Observed = observations{firstValue: uint32(len(b.values)), count: 1}
	b.values = append(b.values, value...)
}

// gatherObservations copies the timestamps, and values if there are any, of the samples from first on, so that those of
// each sample are consecutive and in their original order.
func (b *Batch) gatherObservations(first int32, src pprofile.SampleSlice, want Shape) {
	total := uint32(0)
	for i := int(first); i < len(b.samples.Entries); i++ {
		s := &b.samples.Entries[i].Observed
		s.firstTimestamp = uint32(len(b.timestamps)) + total
		s.firstValue = uint32(len(b.values)) + total
		total += s.count
		s.count = 0 // counts up again while they are copied
	}
	b.timestamps = append(b.timestamps, make([]uint64, total)...)
	if want.Values {
		b.values = append(b.values, make([]int64, total)...)
	}
	targets := b.targets
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
		s := &b.samples.Entries[at].Observed
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
