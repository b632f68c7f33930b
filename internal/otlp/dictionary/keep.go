// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"strconv"
	"strings"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// This file is for a Dictionary that outlives the messages it was filled from.

// arena holds copies of strings in large blocks.
type arena struct {
	block strings.Builder
	bytes int
}

const (
	arenaBlockBytes = 16 << 10
	// arenaOwnBytes is the size from which a string has an allocation of its own.
	arenaOwnBytes = arenaBlockBytes / 8
)

func (a *arena) clone(s string) string {
	if len(s) >= arenaOwnBytes {
		a.bytes += len(s) + len(s)/8 // the allocator rounds up
		return strings.Clone(s)
	}
	if a.block.Cap()-a.block.Len() < len(s) {
		a.block = strings.Builder{}
		a.block.Grow(arenaBlockBytes)
		a.bytes += arenaBlockBytes
	}
	start := a.block.Len()
	a.block.WriteString(s)
	return a.block.String()[start:]
}

// NewCopying returns a dictionary that copies the strings that it interns, so that it keeps nothing else of a message
// alive.
func NewCopying() *Dictionary {
	d := New()
	copies := &arena{}
	d.Strings.kept, d.Attributes.kept = copies, copies
	return d
}

// MemoryBytes estimates what the dictionary occupies: its tables, their indices, and the strings if it keeps copies.
func (d *Dictionary) MemoryBytes() int {
	n := 0
	for _, table := range d.tables() {
		n += table.MemoryBytes()
	}
	if d.Strings.kept != nil {
		n += d.Strings.kept.bytes
	}
	return n
}

func (x *HashIndex) bytes() int { return BytesOf(x.slots) + BytesOf(x.spare) }

// BytesOf returns the size of the memory behind a slice.
func BytesOf[T any](s []T) int {
	var entry T
	return cap(s) * int(unsafe.Sizeof(entry))
}

// Freeze frees the memory that only Intern needs. Afterwards the dictionary is read-only; Strings.Lookup still works.
func (d *Dictionary) Freeze() {
	for _, table := range d.tables() {
		table.freeze()
	}
}

// freeze keeps what Lookup needs.
func (t *Strings) freeze() { t.entries, t.index.spare = clip(t.entries), nil }

// Snapshot returns the dictionary as it is now, for readers that go on while entries are interned into d: tables only
// grow, and what they have does not change. OrderMappings and Reset must not be called.
func (d *Dictionary) Snapshot() *Dictionary {
	s := *d
	s.Strings.index, s.Functions.index, s.Mappings.index, s.Locations.index = HashIndex{}, HashIndex{}, HashIndex{},
		HashIndex{}
	s.Stacks.index, s.Links.index, s.Attributes.index, s.AttributeSets.index = HashIndex{}, HashIndex{}, HashIndex{},
		HashIndex{}
	s.Strings.kept, s.Attributes.kept = nil, nil
	return &s
}

// clip copies s if much of its memory is unused.
func clip[T any](s []T) []T {
	if cap(s)-len(s) < len(s)/16 {
		return s
	}
	return append(make([]T, 0, len(s)), s...)
}

// AsString returns a value as a string: a string as it is, an array or a map as JSON.
func (v Value) AsString() string {
	switch v.kind {
	case pcommon.ValueTypeStr:
		return v.content
	case pcommon.ValueTypeInt:
		return strconv.FormatInt(int64(v.bits), 10)
	default:
		value := pcommon.NewValueEmpty()
		v.CopyTo(value)
		return value.AsString()
	}
}
