// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAlternation(t *testing.T) {
	for name, tt := range map[string]struct {
		totals []int64
		want   int
	}{
		"one process":                   {[]int64{1, 2, 3, 4, 5, 6, 7, 8}, 0},
		"restarts":                      {[]int64{100, 110, 1, 10, 20, 30, 1, 10, 20, 30, 40, 1, 2}, 0},
		"restarts at the same total":    {[]int64{10, 20, 30, 40, 10, 20, 30, 40, 10, 20, 30, 40, 10, 20, 30, 40, 10}, 0},
		"two":                           {[]int64{100, 50, 101, 51, 102, 52, 103, 53}, 2},
		"three":                         {[]int64{100, 50, 70, 101, 51, 71, 102, 52, 72, 103, 53}, 2},
		"four":                          {[]int64{100, 50, 70, 60, 101, 51, 71, 61, 102, 52, 72, 62}, 2},
		"two behind a load balancer":    {[]int64{100, 101, 50, 51, 102, 52, 103, 104, 53}, 1},
		"two, after which one is alone": {[]int64{100, 50, 101, 51, 102, 52, 53, 54, 55, 56, 57, 1, 2}, 1},
	} {
		var a Alternation
		found, last := 0, int64(0)
		for _, total := range tt.totals {
			if a.Note(total, total < last) {
				found++
			}
			last = total
		}
		assert.Equal(t, tt.want, found, name)
	}
}
