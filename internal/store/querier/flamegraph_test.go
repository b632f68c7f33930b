// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package querier

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
)

// What memory had no room for is below its parent as what a graph leaves out.
func TestPrunedTreesKeepTheirTotals(t *testing.T) {
	tree := &answers.Tree{
		Frames: []answers.Frame{{Name: "main"}, {Name: "leaf"}}, Frame: []int32{-1, 0, 1}, Parent: []int32{-1, 0, 1},
		Self: []int64{0, 1, 2}, Total: []int64{10, 7, 2}, IsPruned: true,
	}
	names, levels, _ := levelsOf(prune(tree, 100), false)
	assert.Equal(t, []string{"total", "main", other, "leaf"}, names)
	assert.Equal(t, []int64{0, 10, 0, 0}, levels[0].Values)
	assert.Equal(t, []int64{0, 7, 1, 1, 0, 3, 3, 2}, levels[1].Values)
	assert.Equal(t, []int64{1, 2, 2, 3, 0, 4, 4, 2}, levels[2].Values)
}
