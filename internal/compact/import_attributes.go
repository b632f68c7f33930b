// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// AttributeSet imports the attributes of a sample, location, mapping or profile. One that cannot be
// understood is left out; of several with one key the first in the list counts.
func (im *Importer) AttributeSet(indices pcommon.Int32Slice) profiledict.AttributeSetIndex {
	n := indices.Len()
	if n == 0 {
		return 0
	}
	list := slices.Grow(im.setScratch[:0], n)
	im.set++
	for k := range n {
		a, ok := im.attribute(indices.At(k))
		if !ok {
			continue
		}
		key := im.dict.Attributes.At(a).Key
		if int(key) >= len(im.keySeen) {
			im.keySeen = append(im.keySeen, make([]seenKey, im.dict.Strings.Len()-len(im.keySeen))...)
		}
		if seen := im.keySeen[key]; seen.set == im.set {
			// The same attribute twice is one, as in any set. Two values of one key are a fault.
			if seen.attribute != a {
				im.Repairs[RepairAttributeKey]++
			}
			continue
		}
		im.keySeen[key] = seenKey{set: im.set, attribute: a}
		list = append(list, int32(a))
	}
	im.setScratch = list
	return im.dict.AttributeSets.Intern(list)
}

func (im *Importer) attribute(i int32) (profiledict.AttributeIndex, bool) {
	v, why, done := im.attributes.find(i, StringOutOfRange)
	if !done {
		v, why = im.newAttribute(i)
		v, why = im.attributes.put(i, v, why)
	} else if why != Understood {
		im.Repairs[RepairAttributeIndex]++
	}
	return profiledict.AttributeIndex(v), why == Understood
}

func (im *Importer) newAttribute(i int32) (int32, Reason) {
	src := im.src.attributes.At(int(i))
	key, why := im.String(src.KeyStrindex())
	if why != Understood {
		im.Repairs[RepairAttributeIndex]++
		return 0, why
	}
	unit, why := im.String(src.UnitStrindex())
	if why != Understood {
		im.Repairs[RepairAttributeIndex]++
		return 0, why
	}
	value := src.Value()
	if mayReference(value, maxValueDepth) {
		value = im.resolved().attribute(i)
	}
	value, ok := im.CleanValue(value)
	if !ok {
		return 0, StringOutOfRange
	}
	return int32(im.dict.Attributes.Intern(profiledict.Attribute{Key: key, Unit: unit, Value: profiledict.ValueOf(value)})), Understood
}
