// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"fmt"
	"slices"

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

// labelsOf makes sure that the labels of a sample are in e.shared. The budget is checked against their size before they
// are copied: a sample can refer to a large attribute many times. Link 0 means no link, regardless of what the table
// has there.
func (e *encoder) labelsOf(s pprofile.Sample) (labels sampleLabels) {
	link, hasTime := e.readLabels(s)
	if link != 0 {
		if !e.links.has(link) {
			e.fail(e.samplePath(".link_index"), link, len(e.links.values))
			return labels
		}
		if labels.link = e.links.values[link]; labels.link.size == 0 {
			labels.link = e.share(&e.links, link, e.shareLink)
		}
	}
	labels.size = labels.link.size
	kept := e.kept[:0]
	for k, i := range e.kept {
		if !e.attributes.has(i) {
			e.fail(e.samplePath(fmt.Sprintf(".attribute_indices[%d]", k)), i, len(e.attributes.values))
			return labels
		}
		known := e.attributes.values[i]
		if known.size == 0 {
			known = e.share(&e.attributes, i, e.shareAttribute)
		}
		if !e.isLeftOut(i, link != 0, hasTime) {
			labels.size += known.size
			kept = append(kept, i)
		}
	}
	e.kept = kept
	return labels
}

// readLabels lets e.kept be the attributes of a sample, and returns its link and whether its time is a label.
func (e *encoder) readLabels(s pprofile.Sample) (link int32, hasTime bool) {
	if e.view.Sample != nil {
		viewed := e.view.Sample(e.kept[:0], s)
		e.kept = viewed.Attributes
		return viewed.Link, false
	}
	e.kept = appendIndices(e.kept[:0], s.AttributeIndices())
	return s.LinkIndex(), s.TimestampsUnixNano().Len() > 0
}

// share lets write append an entry to e.shared, and returns where it is.
func (e *encoder) share(spans *sparse[span], i int32, write func(i int32)) span {
	s := span{start: len(e.shared)}
	write(i)
	if s.size = len(e.shared) - s.start; s.size != 0 {
		spans.set(i, s)
	}
	return s
}

// writeSample writes one pprof sample: s with its values, its labels and the label in e.timestampLabel.
func (e *encoder) writeSample(s pprofile.Sample, labels *sampleLabels, values []int64) {
	stack := s.StackIndex()
	if e.checkStack(stack); e.err != nil {
		return
	}
	e.packed = appendValues(e.packed[:0], values)
	rest := len(e.packed) + labels.size + len(e.timestampLabel)
	if !e.fitsSample(e.stackSize(stack) + rest) {
		e.stats.Dropped++
		return
	}
	e.stats.Samples++
	var ids span
	if e.stacks.has(stack) {
		if ids = e.stacks.values[stack]; ids.size == 0 {
			ids = e.share(&e.stacks, stack, e.shareStack)
		}
	}
	b := protowire.AppendVarint(append(e.out, bytesTag(scan.ProfileSample)), uint64(ids.size+rest))
	b = append(append(b, e.shared[ids.start:ids.start+ids.size]...), e.packed...)
	e.out = append(e.appendLabels(b, labels), e.timestampLabel...)
}

// appendLabels appends the labels of the sample that labelsOf read last. It walks the attributes for the first row
// only: a sample can have many timestamps, and many attributes without labels.
func (e *encoder) appendLabels(b []byte, labels *sampleLabels) []byte {
	if labels.size == 0 {
		return b
	}
	if labels.start > 0 {
		return append(b, b[labels.start:labels.start+labels.size]...)
	}
	labels.start = len(b)
	for _, i := range e.kept {
		span := e.attributes.values[i]
		b = append(b, e.shared[span.start:span.start+span.size]...)
	}
	return append(b, e.shared[labels.link.start:labels.link.start+labels.link.size]...)
}

// checkStack reports whether there is a stack. Stack 0 is empty even if the table is.
func (e *encoder) checkStack(stack int32) bool {
	if stack != 0 && !e.stacks.has(stack) {
		e.fail(e.samplePath(".stack_index"), stack, len(e.stacks.values))
		return false
	}
	return true
}

// stackSize returns an upper bound for the size of a stack's location ids in a sample.
func (e *encoder) stackSize(stack int32) int {
	if !e.stacks.has(stack) {
		return 0
	}
	if span := e.stacks.values[stack]; span.size != 0 {
		return span.size
	}
	return e.dict.StackTable().At(int(stack)).LocationIndices().Len() * maxIDSize
}

// shareStack appends the ids of a stack's locations to e.shared, and visits these.
func (e *encoder) shareStack(stack int32) {
	indices := e.dict.StackTable().At(int(stack)).LocationIndices()
	n := indices.Len()
	if n == 0 {
		return
	}
	b, start := openMessage(slices.Grow(e.shared, 2+n*maxIDSize), scan.SampleLocationID)
	if n == 1 { // not packed, to save the length
		b = append(b[:start-2], varintTag(scan.SampleLocationID))
	}
	for k := range n {
		location := indices.At(k)
		if !e.locations.has(location) {
			e.fail(fmt.Sprintf("stack_table[%d].location_indices[%d]", stack, k), location, len(e.locations.values))
			return
		}
		e.locations.visit(location)
		id := e.locations.id(location)
		for ; id >= 0x80; id >>= 7 {
			b = append(b, byte(id)|0x80)
		}
		b = append(b, byte(id))
	}
	if n > 1 {
		b = closeMessage(b, start)
	}
	e.shared = b
}

func appendValues(b []byte, values []int64) []byte {
	switch len(values) {
	case 0:
		return b
	case 1: // not packed, to save the length
		return protowire.AppendVarint(append(b, varintTag(scan.SampleValue)), uint64(values[0]))
	}
	b, start := openMessage(b, scan.SampleValue)
	for _, v := range values {
		b = protowire.AppendVarint(b, uint64(v))
	}
	return closeMessage(b, start)
}
