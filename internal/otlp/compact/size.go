// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

var sizer pprofile.ProtoMarshaler

// headerBound bounds the encoded size of a resource or scope without what is below it: of inPlace bytes with its
// strings in place, or with references to them, when pdata moves the strings to the string table while it marshals.
func headerBound(inPlace int, attributes pcommon.Map) int {
	const (
		reference    = 1 + 4 // into a table of less than 2^28 strings
		longerPrefix = 4     // of the dictionary, to which the strings move
	)
	bound := inPlace
	everyStringOf(attributes, func(string) bool {
		bound += reference
		return true
	})
	if bound > inPlace {
		bound += longerPrefix
	}
	return bound
}

// headerLen is the encoded size of a profile without its samples and payload.
func (p *Header) headerLen(w *dictionary.Writer) int {
	n := valueTypeLen(p.SampleType, w) + valueTypeLen(p.PeriodType, w) + w.AttributesLen(p.Attributes)
	if p.Time != 0 {
		n += 9
	}
	n += dictionary.NumberLen(p.DurationNanos) + dictionary.NumberLen(uint64(p.Period)) +
		dictionary.NumberLen(uint64(p.DroppedAttributesCount))
	if p.ID.IsEmpty() {
		return n + dictionary.FieldLen(0)
	}
	return n + dictionary.FieldLen(len(p.ID))
}

func valueTypeLen(t ValueType, w *dictionary.Writer) int {
	return dictionary.FieldLen(indexLen(w, dictionary.StringTable, int32(t.Type)) + indexLen(w, dictionary.StringTable,
		int32(t.Unit)))
}

func indexLen(w *dictionary.Writer, t table, i int32) int {
	return dictionary.NumberLen(uint64(w.Index(t, i)))
}

// payloadLen is the encoded size of the original payload and its format.
func (p *Header) payloadLen() int {
	n := 0
	if p.PayloadFormat != "" {
		n += dictionary.FieldLen(len(p.PayloadFormat))
	}
	if len(p.Payload) > 0 {
		n += dictionary.FieldLen(len(p.Payload))
	}
	return n
}

// rangeLen is the encoded size of a range: of its samples, and of the payload.
func (b *Batch) rangeLen(r *sampleRange, w *dictionary.Writer) int {
	p, n := &b.profiles[r.profile], 0
	if r.isFirst(p) {
		n = p.payloadLen()
	}
	for i := r.from; i < r.to; i++ {
		s := &b.samples.Entries[i]
		from, to := r.observations(i, s)
		n += b.sampleLen(s, p.shape, from, to, w)
	}
	return n
}

// sampleLen is the encoded size of the observations [from, to) of a sample.
func (b *Batch) sampleLen(s *sample, shape Shape, from, to uint32, w *dictionary.Writer) int {
	n := indexLen(w, dictionary.StackTable, int32(s.Stack)) + indexLen(w, dictionary.LinkTable, int32(s.Link)) +
		w.AttributesLen(s.Attributes)
	if shape.Values {
		values := 0
		for _, v := range b.values[s.Observed.firstValue+from : s.Observed.firstValue+to] {
			values += dictionary.VarintLen(uint64(v))
		}
		n += dictionary.FieldLen(values)
	}
	if shape.Timestamps {
		n += dictionary.FieldLen(8 * int(to-from))
	}
	return dictionary.FieldLen(n)
}

// maxPrefix bounds the tag and length of a message of less than 256 MB.
const maxPrefix = 1 + 4

// measureNew adds what was added since the last call to the estimate of the batch's size: with the indices of the
// dictionary, since the final order is not known yet, and entries that nothing refers to.
func (b *Batch) measureNew() {
	unordered := dictionary.Writer{Dict: &b.dict}
	for t, n := range b.dict.Lens() {
		for ; b.measured[t] < n && table(t) != dictionary.SetTable; b.measured[t]++ {
			b.approximateBytes += dictionary.FieldLen(unordered.EntryLen(table(t), int32(b.measured[t])))
		}
	}
	for ; b.measuredProfiles < len(b.profiles); b.measuredProfiles++ {
		all := b.allOf(int32(b.measuredProfiles))
		b.approximateBytes += maxPrefix + b.profiles[b.measuredProfiles].headerLen(&unordered) +
			b.rangeLen(&all, &unordered)
	}
}

// ApproximateBytes returns an estimate of the batch's encoded size, usually a few percent too high. It is a field
// access.
func (b *Batch) ApproximateBytes() int { return b.approximateBytes }

// sizeOf bounds the encoded size of the ranges, whose dictionary is b.subset.
func (b *Batch) sizeOf(ranges []sampleRange) int {
	total, resource, scope := dictionary.FieldLen(b.subset.encodedLen()), 0, 0
	for k, r := range slices.Backward(ranges) {
		p := &b.profiles[r.profile]
		scope += dictionary.FieldLen(p.headerLen(&b.subset.Writer) + b.rangeLen(&r, &b.subset.Writer))
		beginsResource, beginsScope := b.begins(ranges, k)
		if beginsScope {
			resource += dictionary.FieldLen(b.scopeOf(p).bytes + scope)
			scope = 0
		}
		if beginsResource {
			total += dictionary.FieldLen(b.resourceOf(p).bytes + resource)
			resource = 0
		}
	}
	return total
}
