// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// writeSample writes one pprof sample: s with its values, and the label that observe left in
// e.timestampLabel. The parts' sizes are known or summed up first, so that nothing is moved.
func (e *encoder) writeSample(s pprofile.Sample, values []int64) {
	e.stats.Samples++
	stack := s.StackIndex()
	packed, stackSize := e.stackSize(stack)
	link := e.link(s.LinkIndex())
	attributes := s.AttributeIndices()
	valuesSize, packedValues := encValuesSize(values)
	size := stackSize + valuesSize + link.size + len(e.timestampLabel) + e.attributesSize(attributes)
	if e.err != nil {
		return
	}

	b := append(e.out, encBytesTag(encProfileSample))
	b = encAppendVarint(b, uint64(size))
	b = slices.Grow(b, size)
	b = e.appendStack(b, stack, packed, stackSize)
	b = encAppendValues(b, values, packedValues)
	for k := range attributes.Len() {
		span := e.attributes.spans[attributes.At(k)]
		b = append(b, e.labels[span.start:span.start+span.size]...)
	}
	b = append(b, e.labels[link.start:link.start+link.size]...)
	e.out = append(b, e.timestampLabel...)
}

// stackSize checks stack i, marks its locations, and gives the size of the field with their ids,
// packed being the size without its tag and length.
func (e *encoder) stackSize(i int32) (packed, size int) {
	n := len(e.stacks.spans)
	if uint32(i) >= uint32(n) {
		if i != 0 { // no stack at all is an empty one
			e.fail(e.samplePath(".stack_index"), i, n)
		}
		return 0, 0
	}
	// Fast path: an earlier sample of this payload has the same stack.
	if span := e.stacks.spans[i]; span.size != 0 {
		return 0, span.size
	}
	indices := e.stackTable.At(int(i)).LocationIndices()
	seen := e.locations.seen
	for k := range indices.Len() {
		location := indices.At(k)
		if uint32(location) >= uint32(len(seen)) {
			e.fail(fmt.Sprintf("stack_table[%d].location_indices[%d]", i, k), location, len(seen))
			return 0, 0
		}
		e.locations.visit(location)
		packed += encVarintSize(e.locations.id(location))
	}
	switch indices.Len() {
	case 0:
		return 0, 0
	case 1:
		return packed, 1 + packed
	}
	return packed, 1 + encVarintSize(uint64(packed)) + packed
}

// appendStack writes what stackSize measured.
func (e *encoder) appendStack(b []byte, i int32, packed, size int) []byte {
	if size == 0 {
		return b
	}
	if span := e.stacks.spans[i]; span.size != 0 {
		return append(b, b[span.start:span.start+span.size]...)
	}
	e.stacks.set(i, encSpan{start: len(b), size: size})
	indices := e.stackTable.At(int(i)).LocationIndices()
	if indices.Len() == 1 {
		return encAppendUint(b, encSampleLocationID, e.locations.id(indices.At(0)))
	}
	b = encAppendVarint(append(b, encBytesTag(encSampleLocationID)), uint64(packed))
	for k := range indices.Len() {
		b = encAppendVarint(b, e.locations.id(indices.At(k)))
	}
	return b
}

func encValuesSize(values []int64) (size, packed int) {
	for _, v := range values {
		packed += encVarintSize(uint64(v))
	}
	if len(values) == 1 {
		return 1 + packed, packed
	}
	return 1 + encVarintSize(uint64(packed)) + packed, packed
}

func encAppendValues(b []byte, values []int64, packed int) []byte {
	if len(values) == 1 { // unpacked, to save the length
		return encAppendVarint(append(b, encVarintTag(encSampleValue)), uint64(values[0]))
	}
	b = encAppendVarint(append(b, encBytesTag(encSampleValue)), uint64(packed))
	for _, v := range values {
		b = encAppendVarint(b, uint64(v))
	}
	return b
}

// attributesSize makes sure that the labels of all the attributes are in e.labels, and sums up their sizes.
func (e *encoder) attributesSize(indices pcommon.Int32Slice) int {
	size, n := 0, len(e.attributes.spans)
	for k := range indices.Len() {
		i := indices.At(k)
		if uint32(i) >= uint32(n) {
			e.fail(e.samplePath(fmt.Sprintf(".attribute_indices[%d]", k)), i, n)
			return 0
		}
		if e.attributes.spans[i].size == 0 {
			e.encodeAttribute(i)
		}
		size += e.attributes.spans[i].size
	}
	return size
}
