// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiledict

import "go.opentelemetry.io/collector/pdata/pprofile"

// MappingIndex is an index of the mapping table. 0 is no mapping.
type MappingIndex int32

// Mapping is an entry of the mapping table. MemoryStart < MemoryLimit, or both are 0.
type Mapping struct {
	MemoryStart, MemoryLimit, FileOffset uint64
	Filename                             StringIndex
	Attributes                           AttributeSetIndex
}

func (m Mapping) hash() uint64 {
	h := Mix(m.MemoryStart, m.MemoryLimit)
	return Mix(Mix(h, m.FileOffset), uint64(uint32(m.Filename))<<32|uint64(uint32(m.Attributes)))
}

// Mappings is the mapping table.
type Mappings struct {
	entries []Mapping
	index   HashIndex
}

func (t *Mappings) reset() {
	t.entries = append(t.entries[:0], Mapping{})
	t.index.Reset(0)
}

// Len is the number of entries, the zero value at index 0 included.
func (t *Mappings) Len() int { return len(t.entries) }

// At returns an entry.
func (t *Mappings) At(i MappingIndex) Mapping { return t.entries[i] }

// Intern returns the index of m and adds it if it is new.
func (t *Mappings) Intern(m Mapping) MappingIndex {
	if m == (Mapping{}) {
		return 0
	}
	p := t.index.Start(m.hash())
	for e := t.index.Next(&p); e != 0; e = t.index.Next(&p) {
		if t.entries[e] == m {
			return MappingIndex(e)
		}
	}
	i := len(t.entries)
	t.entries = append(t.entries, m)
	t.index.Insert(p, int32(i))
	return MappingIndex(i)
}

// permute moves entry i to remap[i]. remap is a permutation that leaves 0 where it is.
// Nothing may be interned afterwards.
func (t *Mappings) permute(remap []MappingIndex) {
	moved := make([]Mapping, len(t.entries))
	for i, m := range t.entries {
		moved[remap[i]] = m
	}
	copy(t.entries, moved)
}

func (t *Mappings) copyTo(dst pprofile.MappingSlice, sets *AttributeSets) {
	dst.EnsureCapacity(len(t.entries))
	for _, m := range t.entries {
		entry := dst.AppendEmpty()
		entry.SetMemoryStart(m.MemoryStart)
		entry.SetMemoryLimit(m.MemoryLimit)
		entry.SetFileOffset(m.FileOffset)
		entry.SetFilenameStrindex(int32(m.Filename))
		sets.CopyTo(m.Attributes, entry.AttributeIndices())
	}
}
