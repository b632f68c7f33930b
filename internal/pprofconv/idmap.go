// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

// idMap finds the position of an entry by pprof's id. Ids are usually the positions plus one, and
// nothing has to be looked up; else a slice serves, and a map for ids above the number of entries.
type idMap struct {
	// ordered is the number of entries where each id is the position plus one, else 0.
	ordered uint64
	dense   []uint32 // position plus one, by id
	sparse  map[uint64]uint32
}

// build maps the ids of n entries. Of several entries with one id the last one counts, as in
// profile.Parse before it refuses them.
func (m *idMap) build(n int, id func(int) uint64, stats *DecodeStats) {
	m.ordered, m.dense, m.sparse = 0, m.dense[:0], nil
	if isOrdered(n, id) {
		m.ordered = uint64(n)
		return
	}
	size := n + 1
	if cap(m.dense) < size {
		m.dense = make([]uint32, size)
	} else {
		m.dense = m.dense[:size]
		clear(m.dense)
	}
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

func isOrdered(n int, id func(int) uint64) bool {
	for i := range n {
		if id(i) != uint64(i+1) {
			return false
		}
	}
	return true
}

// find gives the position of the entry with this id.
func (m *idMap) find(id uint64) (position int, ok bool) {
	if m.ordered != 0 {
		return int(id) - 1, id-1 < m.ordered
	}
	return m.lookup(id)
}

func (m *idMap) lookup(id uint64) (position int, ok bool) {
	if id < uint64(len(m.dense)) {
		p := m.dense[id]
		return int(p) - 1, p != 0
	}
	p := m.sparse[id]
	return int(p) - 1, p != 0
}
