// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package uninteresting

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A pattern that nobody can compile, that is very long, or that takes very long, changes nothing.
func TestBadPatternsAreIgnored(t *testing.T) {
	for _, pattern := range []string{"", "(", strings.Repeat("a|", maxPatternBytes),
		strings.Repeat("((a{0,30}){0,30}b?)", 40)} {
		f := New(pattern, "")
		assert.True(t, f.IsEmpty())
		assert.False(t, f.Matches("a"))
	}
	f := New("a|b", "(")
	assert.True(t, f.Matches("b"))
	assert.False(t, f.Matches("ab"))
}
