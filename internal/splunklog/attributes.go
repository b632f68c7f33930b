// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunklog

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// recordAttributes interns the record's attributes that say something of all of its samples, as attributes of their
// Profile. What was used up on the way there is left out.
func (t *translator) recordAttributes() profiledict.AttributeSetIndex {
	attributes := t.beginSet()
	for key, value := range t.record.log.Attributes().All() {
		if t.record.uses(key) {
			continue
		}
		attributes = t.appendAttribute(attributes, key, value)
	}
	t.scratch = attributes
	return t.dict.AttributeSets.Intern(attributes)
}

// uses reports whether an attribute of the record has become something other than an attribute of the Profile.
func (r *record) uses(key string) bool {
	switch key {
	case KeySourceType, keyType, keyFormat, keyFrameCount, keyEventPeriod, keyEventPeriodNanos:
		return true
	case keySampleType, keySampleUnit, keySampleShape, keySampleValue, keyPeriod, keyPeriodType, keyPeriodUnit, keyDuration:
		return r.described
	case KeyEventTimeNanos:
		return r.timeNanos != 0 && r.time == r.timeNanos
	case KeyTraceID, KeySpanID:
		return r.linked
	case keyAllocated:
		return r.format == FormatText && r.typ == TypeAllocation
	}
	return r.isOfSample(key)
}

// isOfRecord reports whether an attribute of the name says what its record is, in Splunk's words or in those of a description.
func isOfRecord(key string) bool {
	switch key {
	case KeySourceType, keyType, keyFormat, keyFrameCount, keyEventPeriod, keyEventPeriodNanos, KeyEventTimeNanos,
		keySampleType, keySampleUnit, keySampleShape, keySampleValue, keyPeriod, keyPeriodType, keyPeriodUnit, keyDuration:
		return true
	}
	return false
}

// isOfSample reports whether an attribute of the record says something of its one sample.
func (r *record) isOfSample(key string) bool {
	return r.format == FormatText && (key == keyEventName || strings.HasPrefix(key, keyThreadPrefix))
}

// keySet holds the keys of the attribute set under way, so that a set of many attributes is built without looking
// through it for each. A key is in the set if its entry is the current generation.
type keySet struct {
	generation  uint32
	generations []uint32 // by index of the string table
}

// reset empties the set in constant time.
func (s *keySet) reset() {
	if s.generation++; s.generation == 0 {
		clear(s.generations)
		s.generation = 1
	}
}

// add reports whether the key was not in the set before.
func (s *keySet) add(key profiledict.StringIndex) bool {
	if int(key) >= len(s.generations) {
		s.generations = append(s.generations, make([]uint32, int(key)+1-len(s.generations))...)
	}
	if s.generations[key] == s.generation {
		return false
	}
	s.generations[key] = s.generation
	return true
}

// beginSet returns an empty list for the attributes of a set.
func (t *translator) beginSet() []int32 {
	t.keys.reset()
	return t.scratch[:0]
}

// appendAttribute interns an attribute, unless the list has its key already.
func (t *translator) appendAttribute(list []int32, key string, value pcommon.Value) []int32 {
	entry := profiledict.Attribute{Key: t.dict.Strings.Intern(profiledict.ValidUTF8(key))}
	if key == keyTruncated {
		if truth, ok := truthOf(value.AsString()); ok {
			entry.Value = profiledict.BoolValue(truth)
			return t.appendEntry(list, entry)
		}
	}
	var ok bool
	if entry.Value, ok = t.assembler.Value(value); !ok {
		return list
	}
	return t.appendEntry(list, entry)
}

// appendEntry interns an attribute, unless the list has its key already.
func (t *translator) appendEntry(list []int32, entry profiledict.Attribute) []int32 {
	if i := int32(t.dict.Attributes.Intern(entry)); i != 0 && t.keys.add(entry.Key) {
		list = append(list, i)
	}
	return list
}

// truthOf reads what agents write for a bool: Java true, .NET True.
func truthOf(text string) (truth, ok bool) {
	switch {
	case strings.EqualFold(text, "true"), text == "1":
		return true, true
	case strings.EqualFold(text, "false"), text == "0":
		return false, true
	default:
		return false, false
	}
}
