// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Contents has hashes of the entries of a dictionary with all that they refer to. They are the same in all dictionaries
// and processes, whatever the indices.
type Contents [NumTables][]uint64

// Update adds the entries that are new in the dictionary.
func (c *Contents) Update(d *Dictionary) {
	for t, n := range d.Lens() {
		for i := int32(len(c[t])); int(i) < n; i++ {
			h := d.ownContent(TableID(t), i)
			d.References(TableID(t), i, func(of TableID, at int32) { h = Combine(h, c[of][at]) })
			c[t] = append(c[t], h)
		}
	}
}

// ownContent returns a hash of what an entry has besides references.
func (d *Dictionary) ownContent(t TableID, i int32) (h uint64) {
	switch t {
	case StringTable:
		h = xxhash.Sum64String(d.Strings.At(StringIndex(i)))
	case AttributeTable:
		v := d.Attributes.At(AttributeIndex(i)).Value
		h = Combine(xxhash.Sum64String(v.content), v.bits)
	case LocationTable:
		l, lines := d.Locations.At(LocationIndex(i))
		h = l.Address
		for k := range lines {
			h = Combine(h, uint64(lines[k].Line))
		}
	case LinkTable:
		l := d.Links.At(LinkIndex(i))
		h = Combine(xxhash.Sum64(l.TraceID[:]), binary.LittleEndian.Uint64(l.SpanID[:]))
	default: // a list, or what has names
	}
	return h
}

// MemoryBytes returns the memory of the hashes.
func (c *Contents) MemoryBytes() (n int) {
	for t := range c {
		n += BytesOf(c[t])
	}
	return n
}

// Combine adds a word to a hash that is the same in all processes.
func Combine(h, word uint64) uint64 {
	h = (h ^ word) * scatterMultiplier
	return h ^ h>>32
}
