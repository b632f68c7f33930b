// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"errors"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// Label is a label of a sample: a string, or a number with a unit, which may be empty.
type Label struct {
	Key, Str, Unit string
	Num            int64
	IsStr          bool
	// id is the number of the label among those that the payload has, keyOrder that of its key, in the order in which the
	// payload has them, with the empty key first; key and unit are indices of its strings.
	id        int
	keyOrder  int32
	key, unit uint32
}

// LabelGroup has the labels of one key, at least one.
type LabelGroup struct {
	Labels []Label
	// list is the number of a list of several labels.
	list int32
}

// Sample is a sample of a pprof as Read reads it. Its slices are borrowed.
type Sample struct {
	Stack dictionary.StackIndex
	// Values are those of the payload, at most 1024; there may be none.
	Values []int64
	// Link is that of the labels trace_id and span_id, 0 without them.
	Link dictionary.LinkIndex
	// Labels are the other labels, in the order in which the payload first has their keys.
	Labels []LabelGroup
	from   *interner
}

// Attribute interns labels as the attribute that Decode makes of them.
func (s *Sample) Attribute(labels LabelGroup) dictionary.AttributeIndex {
	return dictionary.AttributeIndex(s.from.groupAttribute(labels))
}

// ReadOptions are those of Read.
type ReadOptions struct {
	Limits scan.Limits
	// Unnamed is the name of functions that have none.
	Unnamed string
	// Meter bounds the work, and the memory of the plain bytes and tables of the payload, without what goes into the
	// dictionary.
	Meter *size.Meter
	// Untyped means that a payload with sample types is ErrTyped.
	Untyped bool
}

// ErrTyped is the error for a payload that says itself what its samples mean.
var ErrTyped = errors.New("the pprof has sample types")

// Read interns the stacks of a pprof payload (gzip, zstd or plain) into dict, which several
// payloads may share, and calls visit with each sample that can be read. It is for producers
// that use pprof to carry stacks, without sample types and with times in labels, so that the
// caller decides what a sample means. Limits and errors are those of Decode.
//
// Strings in dict and in labels share memory with a copy of the payload's string table until Dictionary.DetachStrings
// is called.
func Read(payload []byte, dict *dictionary.Dictionary, options ReadOptions, visit func(Sample)) (Stats, error) {
	w := workers.Get().(*worker)
	defer w.release()
	meter := options.Meter
	w.unnamed, w.meter = options.Unnamed, meter
	if err := w.open(payload, dict, options.Limits); err != nil {
		return w.stats, err
	}
	if options.Untyped && slices.ContainsFunc(w.payload.SampleTypes, func(t scan.ValueType) bool {
		return t != scan.ValueType{}
	}) {
		return w.stats, ErrTyped
	}
	w.prepare(scan.MaxSampleTypes)
	opened := meter.InUse()
	w.stacks.Reset(w.payload.Data, 0)
	for i, at := range w.payload.Samples {
		if more, isDue := dueBefore(i, at); isDue {
			if err := meter.GrowTo(opened + w.labels.buildBytes() + more); err != nil {
				return w.stats, err
			}
		}
		if reason, ok := w.visit(at, visit); !ok {
			w.stats.Dropped[reason]++
		}
	}
	w.stats.Samples = len(w.payload.Samples) - w.stats.DroppedSamples()
	return w.stats, nil
}

// visit reads a sample and calls use with it.
func (w *worker) visit(at scan.Span, use func(Sample)) (scan.DropReason, bool) {
	r := &w.reader
	if reason, ok := r.Read(at); !ok {
		return reason, false
	}
	known := w.stacks.Find(r.Locations)
	if known == 0 {
		if reason, ok := r.ReadStack(); !ok {
			return reason, false
		}
	}
	var link dictionary.LinkIndex
	w.labels.groups = w.labels.groups[:0]
	if r.Labels.End != 0 {
		reason, ok := w.readLabels(r)
		if !ok {
			return reason, false
		}
		if link, ok = w.splitLabels(); !ok {
			return scan.DropOverBudget, false
		}
	}
	if known == 0 {
		known = w.stacks.Add(r.Locations, w.stack(r.Stack))
	}
	stack := *w.stacks.At(known)
	use(Sample{Stack: stack, Values: r.Values, Link: link, Labels: w.labels.groups, from: &w.interner})
	return 0, true
}
