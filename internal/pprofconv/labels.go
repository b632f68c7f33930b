// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"bytes"
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofscan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// labelSet is what the labels of a sample became.
type labelSet struct {
	// at is the span of the labels in the payload.
	at         pprofscan.Span
	attributes profiledict.AttributeSetIndex
	link       profiledict.LinkIndex
	timestamp  uint64 // 0 for none
}

// labelSets remembers label sets by their bytes, and labels by theirs: samples repeat few of them
// many times, and equal bytes mean equal labels within one payload.
type labelSets struct {
	sets  []labelSet // the first one is unused, since HashIndex has no entry 0
	index profiledict.HashIndex

	known      []knownLabel // the first one is unused
	knownIndex profiledict.HashIndex
	// hint is the size of known in the payload before: payloads that follow each other are much alike.
	hint int

	// names are the keys and units, each text once, the empty one first. nameOf[i] is that of string i, 0 while it
	// is not known.
	names     []labelName
	nameIndex profiledict.HashIndex
	nameOf    []int32
	keys      int32 // how many of the names are keys

	// groups are the lists of several labels of one key that have become an attribute, each a part of groupLabels.
	groups      []knownGroup // the first one is unused
	groupIndex  profiledict.HashIndex
	groupLabels []int32

	// Of the sample in hand.
	labels []Label
	parts  []LabelGroup

	// The last link that labels named, by their text: samples of one span follow each other.
	lastTrace, lastSpan string
	lastLink            profiledict.LinkIndex
}

// labelName is the text of a key or unit.
type labelName struct {
	text  string
	index profiledict.StringIndex // in the dictionary, 0 while it is not interned
	order int32                   // 1 for the first key of the payload; 0 for what is only a unit
}

// knownLabel is a Label message and the label in it.
type knownLabel struct {
	at        pprofscan.Span
	isNone    bool
	label     Label
	attribute int32 // what the label becomes alone, 0 while it is not interned
}

// knownGroup is a list of labels of one key, by their IDs, and the attribute that they become.
type knownGroup struct {
	start, end uint32 // in groupLabels
	attribute  int32
}

func (l *labelSets) reset() {
	l.sets = append(l.sets[:0], labelSet{})
	l.index.Reset(0)
	const maxHint = 1 << 10
	if len(l.known) > 1 {
		l.hint = min(len(l.known), maxHint)
	}
	l.knownIndex.Reset(l.hint)
	clear(l.known)
	l.known = append(l.known[:0], knownLabel{})
	clear(l.names)
	l.names, l.keys = append(l.names[:0], labelName{}), 0
	l.nameIndex.Reset(0)
	l.nameOf = l.nameOf[:0]
	l.groups, l.groupLabels = append(l.groups[:0], knownGroup{}), l.groupLabels[:0]
	l.lastTrace, l.lastSpan, l.lastLink = "", "", 0
	l.groupIndex.Reset(0)
	// Labels share the text of the payload.
	const maxKeptLabels = 1 << 10
	if cap(l.labels) > maxKeptLabels {
		l.labels, l.parts = nil, nil
	}
	clear(l.labels[:cap(l.labels)])
	clear(l.parts[:cap(l.parts)])
}

// bytes estimates the memory in use.
func (l *labelSets) bytes() int {
	return pprofscan.BytesOf(l.sets) + pprofscan.BytesOf(l.known) + pprofscan.BytesOf(l.names) + pprofscan.BytesOf(l.nameOf) +
		pprofscan.BytesOf(l.groups) + pprofscan.BytesOf(l.groupLabels) + pprofscan.BytesOf(l.labels) + pprofscan.BytesOf(l.parts)
}

// labelSet interns the labels of a sample. Other fields of the sample between them are part of the bytes that
// are compared: that can cost a hit, but never makes a wrong one.
func (in *interner) labelSet(reader *pprofscan.SampleReader) (labelSet, DropReason, bool) {
	l := &in.labels
	data, at := in.payload.Data, reader.Labels
	key := data[at.Start:at.End]
	p := l.index.Start(profiledict.HashBytes(key))
	for e := l.index.Next(&p); e != 0; e = l.index.Next(&p) {
		if known := &l.sets[e]; bytes.Equal(data[known.at.Start:known.at.End], key) {
			return *known, 0, true
		}
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
		return labelSet{}, DropOverBudget, false
	}
	attributes := in.set[:0]
	for _, group := range l.parts {
		attributes = append(attributes, in.groupAttribute(group))
	}
	in.set = attributes
	set := labelSet{at: at, attributes: in.dict.AttributeSets.Intern(attributes), link: link, timestamp: timestamp}
	if timestamp != 0 {
		return set, 0, true // hardly another sample has the same bytes
	}
	l.sets = append(l.sets, set)
	l.index.Insert(p, int32(len(l.sets)-1))
	return set, 0, true
}

// readLabels reads the labels of a sample into labels.labels: those of one key together, in the payload's order,
// and keys in the order in which the payload first has them.
func (in *interner) readLabels(reader *pprofscan.SampleReader) (DropReason, bool) {
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
		if !known.isNone {
			l.labels = append(l.labels, known.label)
		}
	}
}

// label reads one Label message, or finds it among those that were read before.
func (in *interner) label(at pprofscan.Span) (*knownLabel, DropReason, bool) {
	l := &in.labels
	data := in.payload.Data
	message := data[at.Start:at.End]
	p := l.knownIndex.Start(profiledict.HashBytes(message))
	for e := l.knownIndex.Next(&p); e != 0; e = l.knownIndex.Next(&p) {
		if known := &l.known[e]; bytes.Equal(data[known.at.Start:known.at.End], message) {
			return known, 0, true
		}
	}
	read, reason, ok := in.payload.ReadLabel(at)
	if !ok {
		return nil, reason, false
	}
	known := knownLabel{at: at, isNone: read.IsNone()}
	if !known.isNone {
		label := Label{ID: len(l.known), IsText: read.Str != 0}
		if label.IsText {
			label.Text = in.at(read.Str)
			if !in.spend(len(label.Text)) {
				return nil, DropOverBudget, false
			}
		} else {
			label.Num = read.Num
			if read.Unit != 0 {
				label.unitName = in.labelName(read.Unit)
				label.Unit = l.names[label.unitName].text
			}
		}
		label.keyName = in.labelName(read.Key)
		name := &l.names[label.keyName]
		if name.order == 0 {
			l.keys++
			name.order = l.keys
		}
		label.Key, label.keyOrder = name.text, name.order
		known.label = label
	}
	l.knownIndex.Insert(p, int32(len(l.known)))
	l.known = append(l.known, known)
	return &l.known[len(l.known)-1], 0, true
}

// labelName returns the number of the text at an index of the string table, which the payload has. As a key, index 0
// is string_table[0] even if that is not empty: Splunk's agent for Python writes such tables and means it.
func (in *interner) labelName(i uint64) int32 {
	l := &in.labels
	if len(in.payload.Strings) == 0 {
		return 0
	}
	if n := len(in.payload.Strings); len(l.nameOf) == 0 {
		l.nameOf = slices.Grow(l.nameOf, n)[:n]
		clear(l.nameOf)
	}
	if known := l.nameOf[i]; known != 0 {
		return known
	}
	text := in.raw(i)
	if text == "" {
		return 0
	}
	p := l.nameIndex.Start(profiledict.HashString(text))
	for e := l.nameIndex.Next(&p); e != 0; e = l.nameIndex.Next(&p) {
		if l.names[e].text == text {
			l.nameOf[i] = e
			return e
		}
	}
	number := int32(len(l.names))
	l.nameIndex.Insert(p, number)
	l.names = append(l.names, labelName{text: text})
	l.nameOf[i] = number
	return number
}

// internName returns the dictionary's index of a name.
func (in *interner) internName(number int32) profiledict.StringIndex {
	name := &in.labels.names[number]
	if name.index == 0 {
		name.index = in.dict.Strings.Intern(name.text)
	}
	return name.index
}

// orderLabels orders by key, and keeps the order within a key. Most samples have a few labels, and
// have them in the same order.
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

// splitLabels parts in.labels.labels by key, without those that name the link, and interns that. It reports whether the
// budget allows the arrays that keys with several labels become.
func (in *interner) splitLabels() (link profiledict.LinkIndex, ok bool) {
	l := &in.labels
	l.parts = l.parts[:0]
	trace, span, named := linkOf(l.labels)
	isLast := named && l.lastLink != 0 && trace == l.lastTrace && span == l.lastSpan
	var ids profiledict.Link
	if named && !isLast {
		ids, named = profiledict.ParseLink(trace, span)
	}
	cost := 0
	for rest := l.labels; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].keyOrder == rest[0].keyOrder {
			n++
		}
		group := LabelGroup{Labels: rest[:n:n]}
		rest = rest[n:]
		if key := group.Labels[0].Key; named && (key == pprofscan.KeyTraceID || key == pprofscan.KeySpanID) {
			continue
		}
		if n > 1 {
			if group.known, _ = l.findGroup(group.Labels); group.known == 0 {
				for i := range group.Labels {
					cost += len(group.Labels[i].Text) + len(group.Labels[i].Unit)
				}
			}
		}
		l.parts = append(l.parts, group)
	}
	if !in.spend(cost) {
		return 0, false
	}
	if named && !isLast {
		l.lastTrace, l.lastSpan, l.lastLink = trace, span, in.dict.Links.Intern(ids)
	}
	if named {
		link = l.lastLink
	}
	return link, true
}

// findGroup looks for the same labels among those that have become an attribute; the result is 0 if they are new.
func (l *labelSets) findGroup(labels []Label) (int32, profiledict.HashProbe) {
	h := uint64(len(labels))
	for i := range labels {
		h = profiledict.Mix(h, uint64(labels[i].ID))
	}
	isSame := func(ids []int32) bool {
		if len(ids) != len(labels) {
			return false
		}
		for i, id := range ids {
			if int(id) != labels[i].ID {
				return false
			}
		}
		return true
	}
	p := l.groupIndex.Start(h)
	for e := l.groupIndex.Next(&p); e != 0; e = l.groupIndex.Next(&p) {
		if isSame(l.groupLabels[l.groups[e].start:l.groups[e].end]) {
			return e, p
		}
	}
	return 0, p
}

// labelAttribute interns a label that is the only one of its key.
func (in *interner) labelAttribute(label *Label) int32 {
	known := &in.labels.known[label.ID]
	if known.attribute == 0 {
		attribute := profiledict.Attribute{Key: in.internName(label.keyName), Value: profiledict.IntValue(label.Num)}
		if label.IsText {
			attribute.Value = profiledict.StringValue(label.Text)
		} else {
			attribute.Unit = in.internName(label.unitName)
		}
		known.attribute = int32(in.dict.Attributes.Intern(attribute))
	}
	return known.attribute
}

// groupAttribute interns the labels of one key. Several become an array: a number's unit is the attribute's where all
// numbers share it; else each number becomes a map of value and unit.
func (in *interner) groupAttribute(part LabelGroup) int32 {
	if len(part.Labels) == 1 {
		return in.labelAttribute(&part.Labels[0])
	}
	l := &in.labels
	if part.known != 0 {
		return l.groups[part.known].attribute
	}
	attribute := profiledict.Attribute{Key: in.internName(part.Labels[0].keyName)}
	unit, shared := sharedUnit(part.Labels)
	if shared {
		attribute.Unit = in.internName(unit)
	}
	value := pcommon.NewValueSlice()
	value.Slice().EnsureCapacity(len(part.Labels))
	for i := range part.Labels {
		element := value.Slice().AppendEmpty()
		switch l := &part.Labels[i]; {
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
	group := knownGroup{start: uint32(len(l.groupLabels)), attribute: int32(in.dict.Attributes.Intern(attribute))}
	for i := range part.Labels {
		l.groupLabels = append(l.groupLabels, int32(part.Labels[i].ID))
	}
	group.end = uint32(len(l.groupLabels))
	_, p := l.findGroup(part.Labels)
	l.groupIndex.Insert(p, int32(len(l.groups)))
	l.groups = append(l.groups, group)
	return group.attribute
}

// sharedUnit returns the unit of the numbers of a group, as a number of names, and reports whether they all have it.
func sharedUnit(group []Label) (unit int32, shared bool) {
	seen := false
	for i := range group {
		l := &group[i]
		if l.IsText {
			continue
		}
		if seen && l.unitName != unit {
			return 0, false
		}
		unit, seen = l.unitName, true
	}
	return unit, true
}

// linkOf returns the text by which labels name a link: one trace_id and one span_id. Anything else, half a pair
// included, stays labels.
func linkOf(labels []Label) (trace, span string, ok bool) {
	trace, hasTrace := onlyText(labels, pprofscan.KeyTraceID)
	span, hasSpan := onlyText(labels, pprofscan.KeySpanID)
	return trace, span, hasTrace && hasSpan
}

// onlyText returns the value of key where it has exactly one, and that is text.
func onlyText(labels []Label, key string) (value string, ok bool) {
	for i := range labels {
		if labels[i].Key != key {
			continue
		}
		if ok || !labels[i].IsText {
			return "", false
		}
		value, ok = labels[i].Text, true
	}
	return value, ok
}
