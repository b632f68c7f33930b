// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Lists interns lists of numbers by value, the empty list at index 0. They are plain int32, since pdata has them so.
// Lists must be Reset before their first use.
type Lists[I ~int32] struct {
	// ends[i] is where list i ends in flat; it begins where list i−1 ends.
	ends  []uint32
	flat  []int32
	index HashIndex
}

// Reset forgets all lists, keeps their memory, and makes room for about that many lists with that many members in all.
func (t *Lists[I]) Reset(lists, members int) {
	t.ends = append(room(t.ends, lists+1), 0)
	t.flat = room(t.flat, members)
	t.index.Reset(lists)
}

// Len returns the number of lists, the empty one included.
func (t *Lists[I]) Len() int { return len(t.ends) }

// At returns a list, which is borrowed.
func (t *Lists[I]) At(i I) []int32 {
	if i == 0 {
		return nil
	}
	return t.flat[t.ends[i-1]:t.ends[i]]
}

// Intern returns the index of a list, and adds a copy of it if it is new.
func (t *Lists[I]) Intern(list []int32) I {
	if len(list) == 0 {
		return 0
	}
	p := t.index.Start(hashInt32s(list))
	for e := t.index.Next(&p); e != 0; e = t.index.Next(&p) {
		if slices.Equal(t.flat[t.ends[e-1]:t.ends[e]], list) {
			return I(e)
		}
	}
	i := t.append(list)
	t.index.Insert(p, int32(i))
	return i
}

// append adds a list without a place in the index.
func (t *Lists[I]) append(list []int32) I {
	t.flat = append(t.flat, list...)
	t.ends = append(t.ends, uint32(len(t.flat)))
	return I(len(t.ends) - 1)
}

// MemoryBytes is what the lists occupy.
func (t *Lists[I]) MemoryBytes() int {
	return BytesOf(t.ends) + BytesOf(t.flat) + t.index.bytes()
}

func (t *Lists[I]) freeze() { t.ends, t.flat, t.index = clip(t.ends), clip(t.flat), HashIndex{} }

// StackIndex is an index of the stack table. 0 is the empty stack.
type StackIndex int32

// Stacks is the stack table: lists of location indices, leaf first.
type Stacks struct{ Lists[StackIndex] }

// AttributeSetIndex names a set of attributes. Sets are no table of OTLP; they are interned here
// because a set is part of the identity of samples, locations and mappings. 0 is the empty set.
type AttributeSetIndex int32

// AttributeSets interns sets of attribute indices: lists in ascending order.
type AttributeSets struct{ Lists[AttributeSetIndex] }

// Intern returns the index of the set of these attributes, which it sorts in place.
// No index may be in it twice; the list is copied.
func (t *AttributeSets) Intern(attributes []int32) AttributeSetIndex {
	slices.Sort(attributes)
	return t.Lists.Intern(attributes)
}

// CopyTo writes the attribute indices of a set.
func (t *AttributeSets) CopyTo(i AttributeSetIndex, dst pcommon.Int32Slice) {
	if i != 0 {
		dst.FromRaw(t.At(i))
	}
}
