// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

// MappingIndex is an index of the mapping table. 0 is no mapping.
type MappingIndex int32

// Mapping is an entry of the mapping table. MemoryStart < MemoryLimit, or both are 0.
type Mapping struct {
	MemoryStart, MemoryLimit, FileOffset uint64
	Filename                             StringIndex
	Attributes                           AttributeSetIndex
}

// Mappings is the mapping table.
type Mappings struct {
	Table[MappingIndex, Mapping]
}

// Intern returns the index of m and adds it if it is new.
func (t *Mappings) Intern(m Mapping) MappingIndex {
	h := Mix(Mix(m.MemoryStart, m.MemoryLimit), m.FileOffset)
	return t.Table.Intern(Mix(h, uint64(uint32(m.Filename))<<32|uint64(uint32(m.Attributes))), m)
}
