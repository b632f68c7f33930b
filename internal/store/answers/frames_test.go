// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// The frames of stacks that refer to one long location are counted before they are walked over: a query that has ended
// stops.
func TestFramesEndWithTheQuery(t *testing.T) {
	dict := dictionary.New()
	lines := make([]dictionary.Line, 10_000)
	for i := range lines {
		lines[i] = dictionary.Line{Function: dict.Functions.Intern(dictionary.Function{Name: dict.Strings.Intern("inlined")}),
			Line: int64(i)}
	}
	inlined := int32(dict.Locations.Intern(dictionary.Location{}, lines))
	for i := range 1000 {
		address := int32(dict.Locations.Intern(dictionary.Location{Address: uint64(i) + 1}, nil))
		dict.Stacks.Intern([]int32{address, inlined})
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	builder := newTreeBuilder(model.NewMemory(ended, nil))
	builder.maxExtra = math.MaxInt
	framer := &blockFramer{b: builder, dict: dict}
	var err error
	for stack := 1; err == nil && stack < framer.dict.Stacks.Len(); stack++ {
		_, err = framer.node(0, dictionary.StackIndex(stack))
	}
	require.ErrorIs(t, err, context.Canceled)
	assert.Less(t, len(builder.parent), 30_000)
}
