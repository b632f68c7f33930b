// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package decode

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The race detector empties pools at random.
func TestEncodeAllocatesLittle(t *testing.T) {
	b := profiletest.New().Profile("cpu", "ns")
	for i := range 200 {
		b.Sample(profiletest.Value(int64(i), "a", string(rune('a'+i))).With(profiletest.Attr("k", i)))
	}
	pd := b.Build()
	got := testing.AllocsPerRun(20, func() {
		_, _, err := encode.Encode(pd)
		require.NoError(t, err)
	})
	assert.LessOrEqual(t, got, 12.0, "allocations must not grow with the samples")
}
