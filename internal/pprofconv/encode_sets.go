// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// encSetID stands for a set of attribute indices: 0 for none, -1-i for {i}, the others by interning.
type encSetID int32

// encPrefix is a set's elements but the last, and the last.
type encPrefix struct {
	set  encSetID
	last int32
}

// encSets interns sets of attribute indices as paths of a trie, so that equal sets, in whatever
// order they were listed, have equal ids without a hash that could collide.
type encSets struct {
	children map[encPrefix]encSetID
	sorted   []int32
}

func (s *encSets) reset() { s.children = encClear(s.children) }

func (s *encSets) intern(indices pcommon.Int32Slice) encSetID {
	n := indices.Len()
	if n == 0 {
		return 0
	}
	if n == 1 && indices.At(0) >= 0 {
		return encSetID(-1 - indices.At(0))
	}
	s.sorted = s.sorted[:0]
	for k := range n {
		s.sorted = append(s.sorted, indices.At(k))
	}
	if !slices.IsSorted(s.sorted) {
		slices.Sort(s.sorted)
	}
	if s.children == nil {
		s.children = map[encPrefix]encSetID{}
	}
	id := encSetID(0)
	for _, last := range s.sorted {
		child, ok := s.children[encPrefix{id, last}]
		if !ok {
			child = encSetID(len(s.children) + 1)
			s.children[encPrefix{id, last}] = child
		}
		id = child
	}
	return id
}
