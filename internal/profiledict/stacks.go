// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiledict

import "go.opentelemetry.io/collector/pdata/pprofile"

// StackIndex is an index of the stack table. 0 is the empty stack.
type StackIndex int32

// Stacks is the stack table.
type Stacks struct{ lists listTable }

func (t *Stacks) reset(entries, locations int) { t.lists.reset(entries, locations) }

// Len is the number of entries, the empty stack at index 0 included.
func (t *Stacks) Len() int { return t.lists.len() }

// At returns the location indices of an entry, leaf first. They are borrowed.
func (t *Stacks) At(i StackIndex) []int32 { return t.lists.at(int32(i)) }

// Intern returns the index of the stack with these location indices, leaf first, and adds it
// if it is new. The list is copied.
func (t *Stacks) Intern(locations []int32) StackIndex { return StackIndex(t.lists.intern(locations)) }

func (t *Stacks) copyTo(dst pprofile.StackSlice) {
	dst.EnsureCapacity(t.lists.len())
	for i := range t.lists.len() {
		entry := dst.AppendEmpty()
		if list := t.lists.at(int32(i)); len(list) > 0 {
			entry.LocationIndices().FromRaw(list)
		}
	}
}
