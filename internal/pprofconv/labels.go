// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"bytes"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// labelSet is what the labels of a sample became.
type labelSet struct {
	// at is where the labels stand in the payload.
	at         span
	attributes profiledict.AttributeSetIndex
	link       profiledict.LinkIndex
}

// labelSets remembers label sets by their bytes: samples repeat few sets many times, and equal
// bytes mean equal labels within one payload.
type labelSets struct {
	sets   []labelSet // the first one is unused, since HashIndex has no entry 0
	index  profiledict.HashIndex
	read   int // labels of the payload, without those of sets met before
	raw    []rawLabel
	labels []Label
}

// rawLabel is a Label message. key, str and unit are indices of string_table.
type rawLabel struct {
	key, str, unit uint64
	num            int64
}

func (l *labelSets) reset() {
	l.sets = append(l.sets[:0], labelSet{})
	l.read = 0
	l.index.Reset(0)
}

// labelSet interns the labels that stand at this place of the payload. Where other fields of the
// sample stand between them, these are part of the bytes that are compared, which costs a memo but
// no correctness.
func (d *decoder) labelSet(at span) (labelSet, DropReason, bool) {
	l := &d.labels
	key := d.data[at.start:at.end]
	p := l.index.Start(profiledict.HashBytes(key))
	for e := l.index.Next(&p); e != 0; e = l.index.Next(&p) {
		if known := &l.sets[e]; bytes.Equal(d.data[known.at.start:known.at.end], key) {
			return *known, 0, true
		}
	}
	if reason, ok := d.readLabels(at); !ok {
		return labelSet{}, reason, false
	}
	set := d.internLabels()
	set.at = at
	l.sets = append(l.sets, set)
	l.index.Insert(p, int32(len(l.sets)-1))
	return set, 0, true
}

// readLabels reads the labels into d.labels.labels, ordered by key, and within a key as they stand.
func (d *decoder) readLabels(at span) (DropReason, bool) {
	l := &d.labels
	l.raw, l.labels = l.raw[:0], l.labels[:0]
	var f field
	for p, end := int(at.start), int(at.end); p < end; {
		var err error
		if p, err = f.next(d.data, p, end); err != nil {
			return DropMalformed, false
		}
		if f.number != 3 {
			continue
		}
		var v [4]uint64
		if !numbers(d.data, f.start, f.end, v[:]) {
			return DropMalformed, false
		}
		raw := rawLabel{key: v[0], str: v[1], num: int64(v[2]), unit: v[3]}
		if !d.hasString(raw.key) || !d.hasString(raw.str) || !d.hasString(raw.unit) {
			return DropUnknownString, false
		}
		l.raw = append(l.raw, raw)
	}
	if l.read += len(l.raw); l.read > 4*d.limits.MaxTableEntries {
		return DropTooManyLabels, false
	}
	for _, raw := range l.raw {
		// As profile.Parse reads it: 0 without a unit is no label.
		switch {
		case raw.str != 0:
			l.labels = append(l.labels, Label{Key: d.labelKey(raw.key), Text: d.str(raw.str), IsText: true})
		case raw.num != 0 || raw.unit != 0:
			l.labels = append(l.labels, Label{Key: d.labelKey(raw.key), Num: raw.num, Unit: d.str(raw.unit)})
		}
	}
	slices.SortStableFunc(l.labels, func(a, b Label) int { return strings.Compare(a.Key, b.Key) })
	return 0, true
}

// internLabels makes attributes of d.labels.labels, and a link of a trace and a span id.
func (d *decoder) internLabels() (set labelSet) {
	labels := d.labels.labels
	link, linked := linkOf(labels)
	if linked {
		set.link = d.dict.Links.Intern(link)
	}
	attributes := d.setScratch[:0]
	for len(labels) > 0 {
		n := 1
		for n < len(labels) && labels[n].Key == labels[0].Key {
			n++
		}
		group := labels[:n]
		labels = labels[n:]
		if linked && (group[0].Key == labelTraceID || group[0].Key == labelSpanID) {
			continue
		}
		attributes = append(attributes, d.labelAttribute(group))
	}
	d.setScratch = attributes
	set.attributes = d.dict.AttributeSets.Intern(attributes)
	return set
}

// labelAttribute interns the labels of one key as one attribute: one value as it is, several as an
// array. A number's unit is the attribute's where all numbers share it; else each number becomes a
// map of value and unit.
func (d *decoder) labelAttribute(group []Label) int32 {
	attribute := profiledict.Attribute{Key: d.dict.Strings.Intern(group[0].Key)}
	if first := &group[0]; len(group) == 1 && first.IsText {
		attribute.Value = profiledict.StringValue(first.Text)
		return int32(d.dict.Attributes.Intern(attribute))
	}
	unit, shared := sharedUnit(group)
	if shared {
		attribute.Unit = d.dict.Strings.Intern(unit)
	}
	if len(group) == 1 {
		attribute.Value = profiledict.IntValue(group[0].Num)
		return int32(d.dict.Attributes.Intern(attribute))
	}
	value := pcommon.NewValueSlice()
	for i := range group {
		element := value.Slice().AppendEmpty()
		switch l := &group[i]; {
		case l.IsText:
			element.SetStr(l.Text)
		case shared:
			element.SetInt(l.Num)
		default:
			m := element.SetEmptyMap()
			m.PutInt("value", l.Num)
			m.PutStr("unit", l.Unit)
		}
	}
	attribute.Value = profiledict.ValueOf(value)
	return int32(d.dict.Attributes.Intern(attribute))
}

// sharedUnit gives the unit of the numbers of a group, and whether they all have it.
func sharedUnit(group []Label) (unit string, shared bool) {
	seen := false
	for i := range group {
		l := &group[i]
		if l.IsText {
			continue
		}
		if seen && l.Unit != unit {
			return "", false
		}
		unit, seen = l.Unit, true
	}
	return unit, true
}
