// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/uninteresting"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// A pattern that takes very long for the names of a tree changes nothing.
func TestSlowPatternsAreIgnored(t *testing.T) {
	b := newTreeBuilder(model.NewMemory(t.Context(), nil))
	b.uninteresting = uninteresting.New("(a?){500}[^a]"+strings.Repeat("|b.*c", 500), "")
	require.False(t, b.uninteresting.IsEmpty())
	b.frameIndex(Frame{Name: "x", Kind: kindUser})
	require.Equal(t, []bool{true}, b.uninterestingFrames())
	name := strings.Repeat("a", 600)
	for i := range uninteresting.MaxCost/b.uninteresting.Cost(name) + 1 {
		b.frameIndex(Frame{Name: fmt.Sprint(i, name), Kind: kindUser})
	}
	began := time.Now()
	require.Nil(t, b.uninterestingFrames())
	require.Less(t, time.Since(began), time.Minute)
}
