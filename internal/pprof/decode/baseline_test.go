// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Many cumulative types take no more memory than two.
func TestBaselineBoundsItsMemory(t *testing.T) {
	const maxStacks = 1 << 12
	worst := 0
	for _, values := range []int{1, 2, 3, 7, 1000} {
		stacks := NewBaseline(BaselineOptions{MaxStacks: maxStacks}).stacksOf(values)
		worst = max(worst, stacks*(fingerprintBytes+8*values))
	}
	assert.Equal(t, maxStacks*(fingerprintBytes+8*2), worst)
}
