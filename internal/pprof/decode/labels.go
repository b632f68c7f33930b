// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
)

// labelSet is what the labels of a sample became.
type labelSet struct {
	attributes dictionary.AttributeSetIndex
	link       dictionary.LinkIndex
	timestamp  uint64 // 0 for none
}

// labelSets remembers label sets by their bytes, and labels by theirs: samples repeat few of them
// many times, and equal bytes mean equal labels within one payload.
type labelSets struct {
	sets  scan.Memo[labelSet]
	known scan.Memo[knownLabel]
	// hint is the number of labels in the payload before: payloads that follow each other are much alike.
	hint int

	// keys has the keys, in the order in which they were seen. keyOf[i] is the key that string i is, 0 if it is not known
	// yet.
	keys  dictionary.Strings
	keyOf []dictionary.StringIndex // indices of keys

	// lists are lists of labels, by the labels' IDs: several of one key, and the pairs of links. interned has the
	// attribute or link that each has become, 0 if it is not interned yet.
	lists    dictionary.Lists[int32]
	interned []int32

	// Those of the current sample.
	labels []Label
	groups []LabelGroup
}

type knownLabel struct {
	isEmpty   bool
	label     Label
	attribute int32 // the attribute of the label alone, 0 if it is not interned yet
}

// reset prepares for the labels of a plain payload.
func (l *labelSets) reset(data []byte) {
	const maxHint = 1 << 10
	if l.known.Len() > 1 {
		l.hint = min(l.known.Len(), maxHint)
	}
	l.sets.Reset(data, 0)
	l.known.Reset(data, l.hint)
	l.keys.Reset(0)
	l.keyOf = l.keyOf[:0]
	l.lists.Reset(0, 0)
	l.interned = append(l.interned[:0], 0)
	// Labels share the strings of the payload.
	const maxKeptLabels = 1 << 10
	if cap(l.labels) > maxKeptLabels {
		l.labels, l.groups = nil, nil
	}
	clear(l.labels[:cap(l.labels)])
	clear(l.groups[:cap(l.groups)])
}

// bytes estimates the memory in use.
func (l *labelSets) bytes() int {
	return l.sets.Bytes() + l.known.Bytes() + l.keys.MemoryBytes() + dictionary.BytesOf(l.keyOf) +
		l.lists.MemoryBytes() + dictionary.BytesOf(l.interned) +
		dictionary.BytesOf(l.labels) + dictionary.BytesOf(l.groups)
}

// buildBytes estimates the memory that the labels of the payload take.
func (l *labelSets) buildBytes() int {
	const setBytes, labelBytes, keyBytes, listBytes = 96, 260, 64, 64
	return setBytes*l.sets.Len() + labelBytes*l.known.Len() + keyBytes*l.keys.Len() + listBytes*l.lists.Len()
}

// labelSet interns the labels of a sample. Other fields of the sample between them are part of the compared
// bytes: that can make equal sets look different, but never the opposite.
func (in *interner) labelSet(reader *scan.SampleReader) (labelSet, scan.DropReason, bool) {
	l := &in.labels
	if known := l.sets.Find(reader.Labels); known != 0 {
		return *l.sets.At(known), 0, true
	}
	if reason, ok := in.readLabels(reader); !ok {
		return labelSet{}, reason, false
	}
	timestamp := uint64(0)
	if len(in.timestampLabels) > 0 {
		timestamp = in.cutTimestamp()
	}
	link, ok := in.splitLabels()
	if !ok {
		return labelSet{}, scan.DropOverBudget, false
	}
	attributes := in.set[:0]
	for _, group := range l.groups {
		attributes = append(attributes, in.groupAttribute(group))
	}
	in.set = attributes
	set := labelSet{attributes: in.dict.AttributeSets.Intern(attributes), link: link, timestamp: timestamp}
	if timestamp == 0 { // with a time, hardly any other sample has the same bytes
		l.sets.Add(reader.Labels, set)
	}
	return set, 0, true
}

// readLabels reads the labels of a sample into labels.labels: those of one key together, in the payload's order,
// and keys in the order in which the payload first has them.
func (in *interner) readLabels(reader *scan.SampleReader) (scan.DropReason, bool) {
	l := &in.labels
	l.labels = l.labels[:0]
	for rest := reader.Labels; ; {
		at, reason, ok := reader.NextLabel(&rest)
		if !ok {
			return reason, false
		}
		if at.End == 0 {
			orderLabels(l.labels)
			return 0, true
		}
		known, reason, ok := in.label(at)
		if !ok {
			return reason, false
		}
		if !known.isEmpty {
			l.labels = append(l.labels, known.label)
		}
	}
}

// label reads one Label message, or finds it among those that were read before. The result is valid until the next
// call.
func (in *interner) label(at scan.Span) (*knownLabel, scan.DropReason, bool) {
	l := &in.labels
	if known := l.known.Find(at); known != 0 {
		return l.known.At(known), 0, true
	}
	read, reason, ok := in.payload.ReadLabel(at)
	if !ok {
		return nil, reason, false
	}
	known := knownLabel{isEmpty: read.IsEmpty()}
	if !known.isEmpty {
		label := Label{id: l.known.Len(), IsStr: read.Str != 0, key: uint32(read.Key)}
		if label.IsStr {
			label.Str = in.at(read.Str)
			if !in.spend(len(label.Str)) {
				return nil, scan.DropOverBudget, false
			}
		} else {
			label.Num, label.Unit, label.unit = read.Num, in.at(read.Unit), uint32(read.Unit)
		}
		label.Key, label.keyOrder = in.labelKey(read.Key)
		known.label = label
	}
	return l.known.At(l.known.Add(at, known)), 0, true
}

// labelKey returns the key of a label, and its number among keys. Index 0 is string_table[0] even if that is not empty:
// Splunk's agent for Python writes such tables and means it.
func (in *interner) labelKey(i uint64) (key string, order int32) {
	l := &in.labels
	n := len(in.payload.Strings)
	if n == 0 {
		return "", 0
	}
	if len(l.keyOf) == 0 {
		l.keyOf = dictionary.Zeroed(l.keyOf, n)
	}
	if l.keyOf[i] == 0 {
		l.keyOf[i] = l.keys.Intern(in.raw(i))
	}
	return l.keys.At(l.keyOf[i]), int32(l.keyOf[i])
}

// orderLabels orders labels by key, and keeps the order within a key. Most samples have a few labels,
// which are in order already.
func orderLabels(labels []Label) {
	if len(labels) > 32 {
		slices.SortStableFunc(labels, func(a, b Label) int { return cmp.Compare(a.keyOrder, b.keyOrder) })
		return
	}
	for i := 1; i < len(labels); i++ {
		for k := i; k > 0 && labels[k].keyOrder < labels[k-1].keyOrder; k-- {
			labels[k], labels[k-1] = labels[k-1], labels[k]
		}
	}
}

// splitLabels groups in.labels.labels by key into in.labels.groups, without those of the link, which it interns. It
// returns false if the budget does not allow the arrays that keys with several labels become.
func (in *interner) splitLabels() (link dictionary.LinkIndex, ok bool) {
	l := &in.labels
	l.groups = l.groups[:0]
	pair, ids, isLinked := in.linkOf(l.labels)
	cost := 0
	for rest := l.labels; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].keyOrder == rest[0].keyOrder {
			n++
		}
		group := LabelGroup{Labels: rest[:n:n]}
		rest = rest[n:]
		if key := group.Labels[0].Key; isLinked && (key == scan.KeyTraceID || key == scan.KeySpanID) {
			continue
		}
		if n > 1 {
			in.set = in.set[:0]
			for i := range group.Labels {
				in.set = append(in.set, int32(group.Labels[i].id))
			}
			if group.list = l.list(in.set); l.interned[group.list] == 0 {
				for i := range group.Labels {
					cost += len(group.Labels[i].Str) + len(group.Labels[i].Unit)
				}
			}
		}
		l.groups = append(l.groups, group)
	}
	if !in.spend(cost) {
		return 0, false
	}
	if !isLinked {
		return 0, true
	}
	if l.interned[pair] == 0 {
		l.interned[pair] = int32(in.dict.Links.Intern(ids))
	}
	return dictionary.LinkIndex(l.interned[pair]), true
}

// linkOf returns the link of the labels trace_id and span_id, and the number of that list, if there is exactly one of
// each. ids is only set if the link is not interned yet. Anything else, half a pair included, stays labels.
func (in *interner) linkOf(labels []Label) (pair int32, ids dictionary.Link, ok bool) {
	trace, span := onlyString(labels, scan.KeyTraceID), onlyString(labels, scan.KeySpanID)
	if trace == nil || span == nil {
		return 0, ids, false
	}
	pair = in.labels.list([]int32{int32(trace.id), int32(span.id)})
	if in.labels.interned[pair] != 0 {
		return pair, ids, true
	}
	ids, ok = dictionary.ParseLink(trace.Str, span.Str)
	return pair, ids, ok
}

// onlyString returns the label of key if there is exactly one, and that is a string.
func onlyString(labels []Label, key string) (only *Label) {
	for i := range labels {
		if labels[i].Key != key {
			continue
		}
		if only != nil || !labels[i].IsStr {
			return nil
		}
		only = &labels[i]
	}
	return only
}

// list returns the number of a list of labels' IDs.
func (l *labelSets) list(ids []int32) int32 {
	list := l.lists.Intern(ids)
	if len(l.interned) < l.lists.Len() {
		l.interned = append(l.interned, 0)
	}
	return list
}

// labelAttribute interns a label that is the only one of its key.
func (in *interner) labelAttribute(label *Label) int32 {
	known := in.labels.known.At(label.id)
	if known.attribute == 0 {
		attribute := dictionary.Attribute{Key: in.internRaw(uint64(label.key)), Value: dictionary.StringValue(label.Str)}
		if !label.IsStr {
			attribute.Value, attribute.Unit = dictionary.IntValue(label.Num), in.intern(uint64(label.unit))
		}
		known.attribute = int32(in.dict.Attributes.Intern(attribute))
	}
	return known.attribute
}

// groupAttribute interns the labels of one key. Several become an array. If all numbers have the same unit, it is the
// attribute's; otherwise each number becomes a map of value and unit.
func (in *interner) groupAttribute(group LabelGroup) int32 {
	if len(group.Labels) == 1 {
		return in.labelAttribute(&group.Labels[0])
	}
	known := &in.labels.interned[group.list]
	if *known != 0 {
		return *known
	}
	attribute := dictionary.Attribute{Key: in.internRaw(uint64(group.Labels[0].key))}
	unit, shared := sharedUnit(group.Labels)
	if shared {
		attribute.Unit = in.intern(unit)
	}
	value := pcommon.NewValueSlice()
	value.Slice().EnsureCapacity(len(group.Labels))
	for i := range group.Labels {
		element := value.Slice().AppendEmpty()
		switch l := &group.Labels[i]; {
		case l.IsStr:
			element.SetStr(l.Str)
		case shared:
			element.SetInt(l.Num)
		default:
			m := element.SetEmptyMap()
			m.PutInt("value", l.Num)
			m.PutStr("unit", l.Unit)
		}
	}
	attribute.Value = dictionary.ValueOf(value)
	*known = int32(in.dict.Attributes.Intern(attribute))
	return *known
}

// sharedUnit returns the unit of the numbers of a group, as an index of the payload, and reports whether they all have
// it.
func sharedUnit(group []Label) (unit uint64, shared bool) {
	var first *Label
	for i := range group {
		switch l := &group[i]; {
		case l.IsStr:
		case first == nil:
			first, unit = l, uint64(l.unit)
		case l.Unit != first.Unit:
			return 0, false
		}
	}
	return unit, true
}
