// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package folded

import (
	"testing"

	"github.com/stretchr/testify/require"

	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// A set has each key once. Pairs that repeat one, or have no key or value, are left out and counted.
func TestLeftOutAttributes(t *testing.T) {
	for line, leftOut := range map[string]int{
		"main;work 7 a=1,b=2\n":         0,
		"main;work 7 a=1,a=2\n":         1,
		"main;work 7 a\xff=1,a\xfe=2\n": 1, // repair makes the keys equal
		"main;work 7 a=1,b,=2\n":        2,
	} {
		pd, stats, err := Decode([]byte(line), Options{})
		require.NoError(t, err)
		require.NoError(t, pt.Check(pd))
		require.Equal(t, 1, stats.Events)
		require.Equal(t, leftOut, stats.LeftOutAttributes, "%q", line)
	}
}
