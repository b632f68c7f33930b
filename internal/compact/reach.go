// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

// marks says which entries of a table of the message samples reach.
type marks []bool

func (m *marks) reset(entries int) {
	if cap(*m) < entries {
		*m = make(marks, entries)
		return
	}
	*m = (*m)[:entries]
	clear(*m)
}

func (m marks) set(i int32) {
	if uint(i) < uint(len(m)) {
		m[i] = true
	}
}

// Reach notes that a sample refers to a stack. Whatever the index is, Stack says later.
func (im *Importer) Reach(stack int32) { im.reachedStacks.set(stack) }

// ImportReached imports what has been reached, table by table, each in the message's order. Following the
// references of one sample after the other would import the same, but jump about in memory, and leave entries in an order
// that says nothing; the message's own order keeps what belongs together together, which compresses better, and leaves the
// main binary's mapping first.
func (im *Importer) ImportReached() {
	for i, reached := range im.reachedStacks {
		if reached {
			indices := im.src.stacks.At(i).LocationIndices()
			for k := range indices.Len() {
				im.reachedLocations.set(indices.At(k))
			}
		}
	}
	for i, reached := range im.reachedLocations {
		if reached {
			l := im.src.locations.At(i)
			im.reachedMappings.set(l.MappingIndex())
			lines := l.Lines()
			for k := range lines.Len() {
				im.reachedFunctions.set(lines.At(k).FunctionIndex())
			}
		}
	}
	for i, reached := range im.reachedMappings {
		if reached {
			im.mapping(int32(i))
		}
	}
	for i, reached := range im.reachedFunctions {
		if reached {
			im.function(int32(i))
		}
	}
	for i, reached := range im.reachedLocations {
		if reached {
			im.location(int32(i))
		}
	}
	for i, reached := range im.reachedStacks {
		if reached {
			im.Stack(int32(i))
		}
	}
}
