// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiledict

import "slices"

// listTable interns lists of indices by value, the empty list at index 0. The lists are plain
// int32, since pdata takes them as they are.
type listTable struct {
	// ends[i] is where list i ends in flat; it begins where list i−1 ends.
	ends  []uint32
	flat  []int32
	index HashIndex
}

func (t *listTable) reset(lists, members int) {
	t.ends = append(room(t.ends, lists+1), 0)
	t.flat = room(t.flat, members)
	t.index.Reset(lists)
}

func (t *listTable) len() int { return len(t.ends) }

// at returns a list, borrowed.
func (t *listTable) at(i int32) []int32 {
	if i == 0 {
		return nil
	}
	return t.flat[t.ends[i-1]:t.ends[i]]
}

func (t *listTable) intern(list []int32) int32 {
	if len(list) == 0 {
		return 0
	}
	p := t.index.Start(hashInt32s(list))
	for e := t.index.Next(&p); e != 0; e = t.index.Next(&p) {
		if slices.Equal(t.flat[t.ends[e-1]:t.ends[e]], list) {
			return e
		}
	}
	i := int32(len(t.ends))
	t.flat = append(t.flat, list...)
	t.ends = append(t.ends, uint32(len(t.flat)))
	t.index.Insert(p, i)
	return i
}
