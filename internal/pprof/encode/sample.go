// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// maxIDSize is the size of the largest id, 1<<31, as a varint.
const maxIDSize = 5

// sampleLabels are the labels that all rows of an OTLP sample have: those of its attributes and of its link.
type sampleLabels struct {
	link span
	// size is that of all the labels. They begin at start in encoder.out once a row was written; until then start is 0.
	size, start int
}

// labelsOf makes sure that the labels of a sample are in e.labels.
func (e *encoder) labelsOf(s pprofile.Sample) sampleLabels {
	link := e.link(s.LinkIndex())
	return sampleLabels{link: link, size: e.attributesSize(s.AttributeIndices()) + link.size}
}

// writeSample writes one pprof sample: s with its values, its labels and the label in e.timestampLabel.
func (e *encoder) writeSample(s pprofile.Sample, labels *sampleLabels, values []int64) {
	valuesSize, packedValues := sizeOfValues(values)
	rest := valuesSize + labels.size + len(e.timestampLabel)
	if !e.fitsSample(rest + e.stackSize(s.StackIndex())) {
		e.stats.Dropped++
		return
	}
	e.stats.Samples++
	b := e.openSample(s.StackIndex(), rest)
	if e.err != nil {
		return
	}
	b = appendValues(b, values, packedValues)
	e.out = append(e.appendLabels(b, s, labels), e.timestampLabel...)
}

// appendLabels appends the labels of a sample. It walks the attributes for the first row only: a sample can have many
// timestamps, and many attributes without labels.
func (e *encoder) appendLabels(b []byte, s pprofile.Sample, labels *sampleLabels) []byte {
	if labels.size == 0 {
		return b
	}
	if labels.start > 0 {
		return append(b, b[labels.start:labels.start+labels.size]...)
	}
	labels.start = len(b)
	attributes := s.AttributeIndices()
	for k := range attributes.Len() {
		span := e.attributes.spans[attributes.At(k)]
		b = append(b, e.labels[span.start:span.start+span.size]...)
	}
	return append(b, e.labels[labels.link.start:labels.link.start+labels.link.size]...)
}

// stackSize returns an upper bound for the size of a stack's location ids in a sample.
func (e *encoder) stackSize(stack int32) int {
	if uint32(stack) >= uint32(len(e.stacks.spans)) {
		return 0
	}
	if span := e.stacks.spans[stack]; span.size != 0 {
		return span.size
	}
	return e.stackTable.At(int(stack)).LocationIndices().Len() * maxIDSize
}

// checkStack reports whether there is a stack. Stack 0 is empty even if the table is.
func (e *encoder) checkStack(stack int32) bool {
	n := len(e.stacks.spans)
	if stack != 0 && uint32(stack) >= uint32(n) {
		e.fail(e.samplePath(".stack_index"), stack, n)
		return false
	}
	return true
}

// openSample writes a sample's tag, its size and its stack. rest is the size of what follows.
func (e *encoder) openSample(stack int32, rest int) []byte {
	if !e.checkStack(stack) || len(e.stacks.spans) == 0 {
		return appendSampleSize(e.out, rest)
	}
	// Fast path: an earlier sample of this payload has the same stack.
	if span := e.stacks.spans[stack]; span.size != 0 {
		b := appendSampleSize(e.out, span.size+rest)
		return append(b, b[span.start:span.start+span.size]...)
	}
	indices := e.stackTable.At(int(stack)).LocationIndices()
	if indices.Len() == 0 {
		return appendSampleSize(e.out, rest)
	}
	return e.appendStack(stack, indices, rest)
}

func appendSampleSize(b []byte, size int) []byte {
	return protowire.AppendVarint(append(b, bytesTag(scan.ProfileSample)), uint64(size))
}

// appendStack writes the tag, size and stack of a sample whose stack the payload does not have yet.
func (e *encoder) appendStack(stack int32, indices pcommon.Int32Slice, rest int) []byte {
	ids := e.locationIDs(stack, indices)
	var tag [1 + maxIDSize]byte
	head := append(tag[:0], varintTag(scan.SampleLocationID)) // one is unpacked, to save the length
	if indices.Len() > 1 {
		head = protowire.AppendVarint(append(tag[:0], bytesTag(scan.SampleLocationID)), uint64(len(ids)))
	}
	size := len(head) + len(ids)
	b := appendSampleSize(slices.Grow(e.out, size+rest+1+maxIDSize), size+rest)
	e.stacks.set(stack, span{start: len(b), size: size})
	return append(append(b, head...), ids...)
}

// locationIDs returns the ids of a stack's locations, and visits these. They are borrowed until the next call.
func (e *encoder) locationIDs(stack int32, indices pcommon.Int32Slice) []byte {
	n, count := len(e.locations.seen), indices.Len()
	b := slices.Grow(e.ids[:0], count*maxIDSize)[:count*maxIDSize]
	e.ids = b
	at := 0
	for k := range count {
		location := indices.At(k)
		if uint32(location) >= uint32(n) {
			e.fail(fmt.Sprintf("stack_table[%d].location_indices[%d]", stack, k), location, n)
			return nil
		}
		e.locations.visit(location)
		id := uint32(e.locations.id(location))
		for ; id >= 0x80; id >>= 7 {
			b[at] = byte(id) | 0x80
			at++
		}
		b[at] = byte(id)
		at++
	}
	return b[:at]
}

func sizeOfValues(values []int64) (size, packed int) {
	if len(values) == 0 {
		return 0, 0
	}
	for _, v := range values {
		packed += protowire.SizeVarint(uint64(v))
	}
	if len(values) == 1 {
		return 1 + packed, packed
	}
	return 1 + protowire.SizeVarint(uint64(packed)) + packed, packed
}

func appendValues(b []byte, values []int64, packed int) []byte {
	if len(values) == 0 {
		return b
	}
	if len(values) == 1 { // unpacked, to save the length
		return protowire.AppendVarint(append(b, varintTag(scan.SampleValue)), uint64(values[0]))
	}
	b = protowire.AppendVarint(append(b, bytesTag(scan.SampleValue)), uint64(packed))
	for _, v := range values {
		b = protowire.AppendVarint(b, uint64(v))
	}
	return b
}

// attributesSize makes sure that the labels of all the attributes are in e.labels, and returns their size. The budget is
// checked against it before they are copied: a sample can refer to a large attribute many times.
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
