// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// timestampForm is how a payload writes the time of a sample: the names of a label's key and unit. The first label that
// can be a time decides; others stay labels, so that the encoder knows which one to write.
type timestampForm struct {
	isKnown   bool
	key, unit dictionary.StringIndex
}

// The years 2000 and 2100 in nanoseconds: a number outside of them is not a time.
const year2000, year2100 = 946684800e9, 4102444800e9

// cutTimestamp removes the label that is the sample's time from labels.labels, and returns the time, or 0 if there is
// none.
func (in *interner) cutTimestamp() uint64 {
	l := &in.labels
	for i := range l.labels {
		label := &l.labels[i]
		if label.IsText || label.Num < year2000 || label.Num >= year2100 {
			continue
		}
		if form := &in.form; form.isKnown {
			if label.keyName != form.key || label.unitName != form.unit {
				continue
			}
		} else if !slices.Contains(in.timestampLabels, label.Key) || label.Unit != "" && label.Unit != scan.TimestampUnit {
			continue
		}
		if i > 0 && l.labels[i-1].keyOrder == label.keyOrder || i+1 < len(l.labels) && l.labels[i+1].keyOrder == label.keyOrder {
			return 0 // a key with several labels is not a time
		}
		in.form = timestampForm{isKnown: true, key: label.keyName, unit: label.unitName}
		at := uint64(label.Num)
		l.labels = slices.Delete(l.labels, i, i+1)
		return at
	}
	return 0
}

// formAttributes returns the attributes that record the form, if it is not the encoder's default.
func (w *worker) formAttributes() (attributes []int32) {
	if !w.form.isKnown {
		return nil
	}
	key, unit := w.labels.names.At(w.form.key), w.labels.names.At(w.form.unit)
	if key != scan.KeyTimestamp {
		attributes = append(attributes, w.attribute(scan.AttributeTimestampLabel, dictionary.StringValue(key)))
	}
	if unit != scan.TimestampUnit {
		attributes = append(attributes, w.attribute(scan.AttributeTimestampUnit, dictionary.StringValue(unit)))
	}
	return attributes
}

// timedTable holds the samples that have a time, each identity once, with a list of observations.
type timedTable struct {
	entries      []timedSample // the first one is unused, since HashIndex has no entry 0
	identities   dictionary.HashIndex
	observations []observation
	// values are those of observations, one after another, perSample each.
	values      []int64
	perSample   int
	first, last uint64
	// withOnes are the types whose values are written although they are all 1.
	withOnes []int
}

type timedSample struct {
	sample
	first, last int32 // of the list of its observations
}

type observation struct {
	timestamp uint64
	next      int32 // -1 ends the list
}

func (t *timedTable) reset(perSample int) {
	t.perSample, t.first, t.last, t.withOnes = perSample, 0, 0, nil
	t.entries = append(t.entries[:0], timedSample{})
	t.observations, t.values = t.observations[:0], t.values[:0]
	t.identities.Reset(0)
}

// bytes estimates the memory in use.
func (t *timedTable) bytes() int {
	return scan.BytesOf(t.entries) + scan.BytesOf(t.observations) + scan.BytesOf(t.values)
}

func (t *timedTable) isEmpty() bool { return len(t.observations) == 0 }

func (t *timedTable) add(s sample, timestamp uint64, values []int64) {
	if t.isEmpty() {
		t.first = timestamp
	}
	t.first, t.last = min(t.first, timestamp), max(t.last, timestamp)
	at := int32(len(t.observations))
	t.observations = append(t.observations, observation{timestamp: timestamp, next: -1})
	t.values = append(t.values, values...)
	h := dictionary.Mix(uint64(uint32(s.stack))<<32|uint64(uint32(s.attributes)), uint64(uint32(s.link)))
	p := t.identities.Start(h)
	for e := t.identities.Next(&p); e != 0; e = t.identities.Next(&p) {
		if known := &t.entries[e]; known.sample == s {
			t.observations[known.last].next = at
			known.last = at
			return
		}
	}
	t.identities.Insert(p, int32(len(t.entries)))
	t.entries = append(t.entries, timedSample{sample: s, first: at, last: at})
}

// isIn reports whether an observation is in the profile of type v, as sampleTable.isIn does.
func (t *timedTable) isIn(observation int32, v int, isFirst bool) bool {
	values := t.values[int(observation)*t.perSample:][:t.perSample]
	return isIn(values, v, isFirst)
}

// areOnes reports whether there are values of type v, and all of them are 1.
func (t *timedTable) areOnes(v int, isFirst bool) bool {
	count := 0
	for i := range t.observations {
		if t.isIn(int32(i), v, isFirst) {
			if count++; t.values[i*t.perSample+v] != 1 {
				return false
			}
		}
	}
	return count > 0
}

// readTimestampedValues reads the last comment of a payload, and reports whether the encoder wrote it because values are all
// 1. One that the encoder would not write again is a comment like others.
func (t *timedTable) readTimestampedValues(comment string, first int) bool {
	list, ok := strings.CutPrefix(comment, scan.CommentTimestampedValues)
	if !ok {
		return false
	}
	var types []int
	for text := range strings.SplitSeq(list, ",") {
		v, err := strconv.Atoi(text)
		if err != nil || strconv.Itoa(v) != text || v < 0 || v >= t.perSample ||
			len(types) > 0 && v <= types[len(types)-1] || !t.areOnes(v, v == first) {
			return false
		}
		types = append(types, v)
	}
	t.withOnes = types
	return true
}

// window returns a time and duration that contain all observations: those of the payload, widened if necessary.
func (t *timedTable) window(time, duration uint64) (uint64, uint64) {
	first, end := min(time, t.first), max(time+duration, t.last+1)
	if duration == 0 && time == 0 {
		first = t.first
	}
	return first, end - first
}

// writeTimed writes the observations that have a value of type t.
func (w *worker) writeTimed(dst pprofile.SampleSlice, t int, isFirst bool) {
	timed := &w.timed
	withValues := slices.Contains(timed.withOnes, t) || !timed.areOnes(t, isFirst)
	for i := range timed.entries[1:] {
		s := &timed.entries[1+i]
		count := 0
		for o := s.first; o >= 0; o = timed.observations[o].next {
			if timed.isIn(o, t, isFirst) {
				count++
			}
		}
		if count == 0 {
			continue
		}
		entry := dst.AppendEmpty()
		entry.SetStackIndex(int32(s.stack))
		entry.SetLinkIndex(int32(s.link))
		w.dict.AttributeSets.CopyTo(s.attributes, entry.AttributeIndices())
		entry.TimestampsUnixNano().EnsureCapacity(count)
		if withValues {
			entry.Values().EnsureCapacity(count)
		}
		for o := s.first; o >= 0; o = timed.observations[o].next {
			if !timed.isIn(o, t, isFirst) {
				continue
			}
			entry.TimestampsUnixNano().Append(timed.observations[o].timestamp)
			if withValues {
				entry.Values().Append(timed.values[int(o)*timed.perSample+t])
			}
		}
	}
}
