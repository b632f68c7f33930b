// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// Label is a label of a sample: text, or a number with a unit, which may be empty.
type Label struct {
	// ID is the same positive number for labels that stand in one payload as the same bytes, so that
	// what a label means has to be worked out once. Others have other numbers, and there are few.
	ID              int
	Key, Text, Unit string
	Num             int64
	IsText          bool
	// keyOrder numbers the keys in the order in which the payload has them; keyName and unitName are numbers of names.
	keyOrder, keyName, unitName int32
}

// Sample is a sample of a pprof as Read gives it.
type Sample struct {
	Stack profiledict.StackIndex
	// Values are those that stand in the payload, which may be none, 1024 of them at most. They are borrowed.
	Values []int64
	// Labels of one key stand together, as they stand in the payload; keys are in the order in which
	// the payload first has them. They are borrowed.
	Labels []Label
}

// Read interns the stacks of a pprof payload (gzip, zstd or plain) into dict, which several
// payloads may share, and hands each sample that can be understood to visit. It is for producers
// whose pprof is a carrier of stacks, with no sample types and with times in labels, so that what
// a sample means is the caller's to say. Limits and errors are those of Decode.
//
// Strings in dict and in labels share memory with a copy of the payload's string table:
// Dictionary.DetachStrings ends that.
func Read(payload []byte, dict *profiledict.Dictionary, limits Limits, visit func(Sample)) (DecodeStats, error) {
	d := decoders.Get().(*decoder)
	own := d.dict
	d.dict, d.visit = dict, visit
	defer func() {
		d.dict, d.visit = own, nil
		d.release()
	}()
	d.limits = limits.withDefaults()
	d.stats = DecodeStats{}
	data, err := d.plain(payload, d.limits.MaxProfileBytes)
	if err != nil {
		return d.stats, err
	}
	err = d.decode(data)
	return d.stats, err
}

// visitSample hands over the sample whose locations and values have been read; of its locations perhaps
// only the bytes, where they are those of a stack that is known.
func (d *decoder) visitSample(stack knownStack, labels span, fresh bool) (DropReason, bool) {
	d.labels.labels = d.labels.labels[:0]
	if labels.end != 0 {
		if reason, ok := d.readLabels(labels); !ok {
			return reason, false
		}
	}
	if fresh {
		d.internLocations()
	}
	if stack.index == 0 {
		stack.index = d.dict.Stacks.Intern(d.stack)
		d.stacks.add(stack)
	}
	d.visit(Sample{Stack: stack.index, Values: d.sampleValues, Labels: d.labels.labels})
	return 0, true
}
