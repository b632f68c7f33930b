// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

// idMap finds the position of an entry by pprof's id. Ids are usually the positions plus one, so
// that a slice serves; ids far above the number of entries go to a map.
type idMap struct {
	dense  []uint32 // position plus one, by id
	sparse map[uint64]uint32
}

// build maps the ids of n entries. Of several entries with one id the last one counts, as in
// profile.Parse before it refuses them.
func (m *idMap) build(n int, id func(int) uint64, stats *DecodeStats) {
	size := n + 1
	if cap(m.dense) < size {
		m.dense = make([]uint32, size)
	} else {
		m.dense = m.dense[:size]
		clear(m.dense)
	}
	m.sparse = nil
	for i := range n {
		id := id(i)
		position := uint32(i + 1)
		if id < uint64(size) {
			if m.dense[id] != 0 || id == 0 {
				stats.Repaired[RepairDuplicateID]++
			}
			m.dense[id] = position
			continue
		}
		if m.sparse == nil {
			m.sparse = make(map[uint64]uint32)
		}
		if m.sparse[id] != 0 {
			stats.Repaired[RepairDuplicateID]++
		}
		m.sparse[id] = position
	}
}

// find gives the position of the entry with this id.
func (m *idMap) find(id uint64) (position int, ok bool) {
	if id < uint64(len(m.dense)) {
		p := m.dense[id]
		return int(p) - 1, p != 0
	}
	p := m.sparse[id]
	return int(p) - 1, p != 0
}
