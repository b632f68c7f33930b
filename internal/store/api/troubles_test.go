// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What is refused or dropped now is told until nothing has been for ten minutes; what is too old is dropped on purpose.
func TestTroubles(t *testing.T) {
	found := troubles{byCount: map[string]trouble{}}
	at := time.Unix(1_800_000_000, 0)
	status := func(refused, evicted int) map[string]any {
		return map[string]any{"refused": map[string]int{"max_series": refused, "kept_elsewhere": 9},
			"evicted": map[string]int{"age": 1000, "bytes": evicted}}
	}
	assert.Empty(t, found.lately(status(0, 0), at))
	assert.Equal(t, map[string]int{"refused.max_series": 5}, found.lately(status(5, 0), at.Add(time.Minute)))
	assert.Equal(t, map[string]int{"refused.max_series": 7, "evicted.bytes": 1},
		found.lately(status(7, 1), at.Add(6*time.Minute)))
	assert.Equal(t, map[string]int{"refused.max_series": 7, "evicted.bytes": 1},
		found.lately(status(7, 1), at.Add(16*time.Minute)))
	assert.Empty(t, found.lately(status(7, 1), at.Add(17*time.Minute)))
	assert.Equal(t, map[string]int{"refused.max_series": 2}, found.lately(status(9, 1), at.Add(time.Hour)))
}
