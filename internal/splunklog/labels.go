// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// readLabels makes of a sample's labels, those of one key together, what they mean: its time, its period and its link;
// the others become attributes.
// It reports whether the budget of the body allows them.
func (t *translator) readLabels(labels []pprofconv.Label, o *observation) bool {
	linked := t.readLink(labels, o)
	attributes := t.beginSet()
	for len(labels) > 0 {
		n := 1
		for n < len(labels) && labels[n].Key == labels[0].Key {
			n++
		}
		group := labels[:n]
		labels = labels[n:]
		switch group[0].Key {
		case keyEventTime:
			millis, ok := labelNumber(&group[0])
			o.time = timeNanos(millis, ok, &t.result.BadTimes)
			continue
		case keyEventPeriod:
			if t.record.typ == TypeCPU {
				millis, ok := labelNumber(&group[0])
				o.period = periodNanos(millis, ok, &t.result.BadTimes)
				continue
			}
		case KeyEventTimeNanos:
			// Labels are ordered by key: the time in milliseconds stands before it.
			if nanos, ok := labelNumber(&group[0]); ok {
				o.time = exactTime(o.time, nanos)
				continue
			}
		case keyEventPeriodNanos:
			if nanos, ok := labelNumber(&group[0]); ok && t.record.typ == TypeCPU {
				o.period = exactTime(o.period, nanos)
				continue
			}
		case KeyTraceID, KeySpanID:
			if linked {
				continue
			}
		}
		if n == 1 {
			attributes = t.appendLabel(attributes, group)
		} else {
			var ok bool
			if attributes, ok = t.appendGroup(attributes, group); !ok {
				return false
			}
		}
	}
	t.scratch = attributes
	o.Attributes = t.dict.AttributeSets.Intern(attributes)
	return true
}

// appendLabel is appendEntry of a label that is alone with its key. Few labels of a body differ, so what each becomes
// is remembered by its number.
func (t *translator) appendLabel(list []int32, group []pprofconv.Label) []int32 {
	id := group[0].ID
	for len(t.attributeOf) <= id {
		t.attributeOf = append(t.attributeOf, unknownLabel)
	}
	i := t.attributeOf[id]
	if i == unknownLabel {
		i = int32(t.dict.Attributes.Intern(t.labelAttribute(group)))
		t.attributeOf[id] = i
	}
	if i != 0 && t.keys.add(t.dict.Attributes.At(profiledict.AttributeIndex(i)).Key) {
		list = append(list, i)
	}
	return list
}

// appendGroup is appendEntry of several labels of one key. What they become is remembered by their numbers, since
// samples can repeat long ones by a few bytes, and what they become is charged to the budget of the body: an array
// has its own copy of each text.
func (t *translator) appendGroup(list []int32, group []pprofconv.Label) ([]int32, bool) {
	t.groupIDs = t.groupIDs[:0]
	for i := range group {
		t.groupIDs = binary.AppendUvarint(t.groupIDs, uint64(group[i].ID))
	}
	i, ok := t.attributeOfGroup[string(t.groupIDs)]
	if !ok {
		for j := range group {
			t.groupBytesLeft -= len(group[j].Text) + len(group[j].Unit)
		}
		if t.groupBytesLeft < 0 {
			return list, false
		}
		i = int32(t.dict.Attributes.Intern(t.labelAttribute(group)))
		t.attributeOfGroup[string(t.groupIDs)] = i
	}
	if t.keys.add(t.dict.Attributes.At(profiledict.AttributeIndex(i)).Key) {
		list = append(list, i)
	}
	return list, true
}

// unknownLabel marks a label that was not met in the body under way.
const unknownLabel = -1

func labelNumber(l *pprofconv.Label) (int64, bool) {
	if l.IsText {
		return parseNumber(l.Text)
	}
	return l.Num, true
}

// readLink sets the link to that of a trace_id and a span_id, one text each, or else to the record's. It reports
// whether the labels have one.
func (t *translator) readLink(labels []pprofconv.Label, o *observation) bool {
	trace, span, pairs := "", "", 0
	for i := range labels {
		switch l := &labels[i]; l.Key {
		case KeyTraceID:
			trace = l.Text
			pairs++
		case KeySpanID:
			span = l.Text
			pairs++
		}
	}
	if pairs == 2 {
		if last := &t.lastLink; last.index != 0 && last.trace == trace && last.span == span {
			o.Link = last.index
			return true
		}
		if link, ok := profiledict.ParseLink(trace, span); ok {
			o.Link = t.dict.Links.Intern(link)
			t.lastLink = knownLink{trace: trace, span: span, index: o.Link}
			return true
		}
	}
	if t.record.linked {
		o.Link = t.dict.Links.Intern(t.record.link)
	}
	return false
}

// knownLink is a link by the text of its ids: samples of one span follow each other.
type knownLink struct {
	trace, span string
	index       profiledict.LinkIndex
}

// labelAttribute returns the labels of one key as an attribute: one value as it is, several as an array.
func (t *translator) labelAttribute(group []pprofconv.Label) profiledict.Attribute {
	first := &group[0]
	attribute := profiledict.Attribute{Key: t.dict.Strings.Intern(first.Key)}
	if len(group) == 1 {
		attribute.Value = labelValue(first)
		if !first.IsText {
			attribute.Unit = t.dict.Strings.Intern(first.Unit)
		}
		return attribute
	}
	list := pcommon.NewValueSlice()
	for i := range group {
		element := list.Slice().AppendEmpty()
		switch l := &group[i]; {
		case l.IsText:
			element.SetStr(l.Text)
		case l.Unit == "":
			element.SetInt(l.Num)
		default:
			m := element.SetEmptyMap()
			m.PutInt("value", l.Num)
			m.PutStr("unit", l.Unit)
		}
	}
	attribute.Value = profiledict.ValueOf(list)
	return attribute
}

// labelValue returns the value of a label in the type that the attribute of its name has (semantic conventions,
// registry/attributes/thread), since agents differ in which of text and number they write.
func labelValue(l *pprofconv.Label) profiledict.Value {
	switch l.Key {
	case keyThreadID, keyThreadOSID:
		if n, ok := labelNumber(l); ok {
			return profiledict.IntValue(n)
		}
	case keyTruncated:
		if !l.IsText {
			return profiledict.BoolValue(l.Num != 0)
		}
		if truth, ok := truthOf(l.Text); ok {
			return profiledict.BoolValue(truth)
		}
	}
	if l.IsText {
		return profiledict.StringValue(l.Text)
	}
	return profiledict.IntValue(l.Num)
}
