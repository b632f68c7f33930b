// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// A pattern that nobody can compile, that is very long, or that takes very long, changes nothing.
func TestBadPatternsAreIgnored(t *testing.T) {
	var u uninteresting
	for _, pattern := range []string{"(", strings.Repeat("a|", maxPatternBytes),
		strings.Repeat("((a{0,30}){0,30}b?)", 40)} {
		assert.Nil(t, u.patternOf(pattern))
	}
	assert.True(t, u.patternOf("a|b").MatchString("b"))
	assert.False(t, u.patternOf("a|b").MatchString("ab"))

	b := newTreeBuilder(model.NewMemory(t.Context(), nil))
	u = uninteresting{}
	u.drop = u.patternOf("(a?){500}[^a]" + strings.Repeat("|b.*c", 500))
	require.NotNil(t, u.drop)
	b.uninteresting = u
	b.frameIndex(Frame{Name: "x", Kind: kindUser})
	require.Equal(t, []bool{true}, b.uninterestingFrames())
	for i := range maxWork / u.steps / 500 {
		b.frameIndex(Frame{Name: fmt.Sprint(i, strings.Repeat("a", 600)), Kind: kindUser})
	}
	began := time.Now()
	require.Nil(t, b.uninterestingFrames())
	require.Less(t, time.Since(began), time.Minute)
}
