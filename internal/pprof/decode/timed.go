// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// timestampForm is how a payload writes the time of a sample: a label's key, with its keyOrder, and unit. The first
// label that can be a time decides; others stay labels, so that the encoder knows which one to write.
type timestampForm struct {
	keyOrder  int32 // 0 if there is none yet
	key, unit string
}

// The years 2000 and 2100 in nanoseconds: a number outside of them is not a time.
const year2000, year2100 = 946684800e9, 4102444800e9

// cutTimestamp removes the label that is the sample's time from labels.labels, and returns the time, or 0 if there is
// none.
func (in *interner) cutTimestamp() uint64 {
	l := &in.labels
	for i := range l.labels {
		label := &l.labels[i]
		if label.IsStr || label.Num < year2000 || label.Num >= year2100 {
			continue
		}
		if form := &in.form; form.keyOrder != 0 {
			if label.keyOrder != form.keyOrder || label.Unit != form.unit {
				continue
			}
		} else if !slices.Contains(in.timestampLabels, label.Key) || label.Unit != "" && label.Unit != scan.TimestampUnit {
			continue
		}
		if i > 0 && l.labels[i-1].keyOrder == label.keyOrder || i+1 < len(l.labels) &&
			l.labels[i+1].keyOrder == label.keyOrder {
			return 0 // a key with several labels is not a time
		}
		in.form = timestampForm{keyOrder: label.keyOrder, key: label.Key, unit: label.Unit}
		at := uint64(label.Num)
		l.labels = slices.Delete(l.labels, i, i+1)
		return at
	}
	return 0
}

// formAttributes returns the attributes that record the form, if it is not the encoder's default.
func (w *worker) formAttributes() (attributes []int32) {
	if w.form.keyOrder == 0 {
		return nil
	}
	if w.form.key != scan.KeyTimestamp {
		attributes = append(attributes, w.attribute(scan.AttributeTimestampLabel, dictionary.StringValue(w.form.key)))
	}
	if w.form.unit != scan.TimestampUnit {
		attributes = append(attributes, w.attribute(scan.AttributeTimestampUnit, dictionary.StringValue(w.form.unit)))
	}
	return attributes
}

// timedSamples is what is known of all samples that have a time.
type timedSamples struct {
	exist       bool
	first, last uint64
}

// add adds a sample with a time.
func (t *timedSamples) add(timestamp uint64) {
	if !t.exist {
		t.exist, t.first = true, timestamp
	}
	t.first, t.last = min(t.first, timestamp), max(t.last, timestamp)
}

// window returns a time and duration that contain all observations: those of the payload, widened if necessary.
func (t *timedSamples) window(time, duration uint64) (uint64, uint64) {
	first, end := min(time, t.first), max(time+duration, t.last+1)
	if duration == 0 && time == 0 {
		first = t.first
	}
	return first, end - first
}

// areOnes reports whether samples with a time have values of type v, and all of them are 1.
func (w *worker) areOnes(v int, isFirst bool) bool {
	found := false
	for i := range w.samples.Entries {
		s := &w.samples.Entries[i]
		if s.Group != timed {
			continue
		}
		for _, o := range w.observationsOf(s, v, isFirst) {
			if found = true; w.samples.ValuesOf(o)[v] != 1 {
				return false
			}
		}
	}
	return found
}
