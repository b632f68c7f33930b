// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiledict

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// AttributeSetIndex names a set of attributes. Sets are no table of OTLP; they are interned here
// because a set is part of the identity of samples, locations and mappings. 0 is the empty set.
type AttributeSetIndex int32

// AttributeSets interns sets of attribute indices.
type AttributeSets struct{ lists listTable }

func (t *AttributeSets) reset() { t.lists.reset(0, 0) }

// Len is the number of sets, the empty one included.
func (t *AttributeSets) Len() int { return t.lists.len() }

// At returns the attribute indices of a set in ascending order. They are borrowed.
func (t *AttributeSets) At(i AttributeSetIndex) []int32 { return t.lists.at(int32(i)) }

// Intern returns the index of the set of these attributes, which it sorts in place.
// No index may be in it twice; the list is copied.
func (t *AttributeSets) Intern(attributes []int32) AttributeSetIndex {
	slices.Sort(attributes)
	return AttributeSetIndex(t.lists.intern(attributes))
}

// CopyTo writes the attribute indices of a set.
func (t *AttributeSets) CopyTo(i AttributeSetIndex, dst pcommon.Int32Slice) {
	if i != 0 {
		dst.FromRaw(t.At(i))
	}
}
