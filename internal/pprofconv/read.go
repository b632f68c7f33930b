// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"bytes"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofscan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// Label is a label of a sample: text, or a number with a unit, which may be empty.
type Label struct {
	// ID is the same positive number for labels that are the same bytes of one payload, so that
	// what a label means has to be worked out once. Others have other numbers, and there are few.
	ID              int
	Key, Text, Unit string
	Num             int64
	IsText          bool
	// keyOrder numbers the keys in the order in which the payload has them; keyName and unitName are numbers of names.
	keyOrder, keyName, unitName int32
}

// LabelGroup are the labels of one key, one at least.
type LabelGroup struct {
	Labels []Label
	// known is the knownGroup of several labels; 0 if they are not interned yet.
	known int32
}

// Sample is a sample of a pprof as Read reads it. What it refers to is borrowed.
type Sample struct {
	Stack profiledict.StackIndex
	// Values are those of the payload, which may be none, 1024 of them at most.
	Values []int64
	// Link is what a trace_id and a span_id name, 0 without them.
	Link profiledict.LinkIndex
	// Labels are the other labels, in the order in which the payload first has their keys.
	Labels []LabelGroup
	from   *interner
}

// Attribute interns labels as the attribute that Decode makes of them.
func (s *Sample) Attribute(labels LabelGroup) profiledict.AttributeIndex {
	return profiledict.AttributeIndex(s.from.groupAttribute(labels))
}

// Read interns the stacks of a pprof payload (gzip, zstd or plain) into dict, which several
// payloads may share, and hands each sample that can be understood to visit. It is for producers
// whose pprof is a carrier of stacks, with no sample types and with times in labels, so that what
// a sample means is the caller's to decide. Limits and errors are those of Decode.
//
// Functions without a name get the name unnamed, which may be empty.
//
// Strings in dict and in labels share memory with a copy of the payload's string table:
// Dictionary.DetachStrings ends that.
func Read(payload []byte, dict *profiledict.Dictionary, limits Limits, unnamed string, visit func(Sample)) (DecodeStats, error) {
	w := workers.Get().(*worker)
	defer w.release()
	w.unnamed = unnamed
	if err := w.open(payload, dict, limits); err != nil {
		return w.stats, err
	}
	w.prepare(pprofscan.MaxSampleTypes)
	w.stacks.reset(w.payload.Data)
	w.reader.FindStack = w.stacks.find
	for _, at := range w.payload.Samples {
		if reason, ok := w.visit(at, dict, visit); !ok {
			w.stats.Dropped[reason]++
		}
	}
	w.stats.Samples = len(w.payload.Samples) - w.stats.DroppedSamples()
	return w.stats, nil
}

// visit reads a sample and hands it over.
func (w *worker) visit(at pprofscan.Span, dict *profiledict.Dictionary, use func(Sample)) (DropReason, bool) {
	r := &w.reader
	if reason, ok := r.Read(at); !ok {
		return reason, false
	}
	var link profiledict.LinkIndex
	w.labels.parts = w.labels.parts[:0]
	if r.Labels.End != 0 {
		reason, ok := w.readLabels(r)
		if !ok {
			return reason, false
		}
		if link, ok = w.splitLabels(); !ok {
			return DropOverBudget, false
		}
	}
	stack := w.stacks.found
	if !r.KnowsStack {
		r.Resolve(w.location)
		stack = dict.Stacks.Intern(r.Stack)
		if r.StackAt.End != 0 {
			w.stacks.add(r.StackAt, stack)
		}
	}
	use(Sample{Stack: stack, Values: r.Values, Link: link, Labels: w.labels.parts, from: &w.interner})
	return 0, true
}

// knownStacks remembers stacks by their bytes. It pays where samples of one stack come again and
// again, as they do where each carries a time: Read is for those. Decode's samples are already
// combined by stack, so that a stack seldom comes a third time.
type knownStacks struct {
	data  []byte
	list  []knownStack // the first one is unused, since HashIndex has no entry 0
	index profiledict.HashIndex

	// What the last find found, and where it ended.
	found profiledict.StackIndex
	probe profiledict.HashProbe
}

// knownStack is the span of a list of location ids in the payload, and the stack that it became.
type knownStack struct {
	at    pprofscan.Span
	stack profiledict.StackIndex
}

func (s *knownStacks) reset(data []byte) {
	s.data = data
	s.list = append(s.list[:0], knownStack{})
	s.index.Reset(0)
}

// find looks up the ids at a span, and reports whether they are known.
func (s *knownStacks) find(at pprofscan.Span) bool {
	ids := s.data[at.Start:at.End]
	s.probe = s.index.Start(profiledict.HashBytes(ids))
	for e := s.index.Next(&s.probe); e != 0; e = s.index.Next(&s.probe) {
		if known := &s.list[e]; bytes.Equal(s.data[known.at.Start:known.at.End], ids) {
			s.found = known.stack
			return true
		}
	}
	return false
}

// add keeps what the last find did not know.
func (s *knownStacks) add(at pprofscan.Span, stack profiledict.StackIndex) {
	s.index.Insert(s.probe, int32(len(s.list)))
	s.list = append(s.list, knownStack{at: at, stack: stack})
}
