// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// RequireReserved is RequireCost of a decoder that reserves its memory with the function that is passed to run. It also
// fails the test if the decoder took more than slackBytes and one and a half times what it had reserved.
func RequireReserved(tb testing.TB, bound Bound, slackBytes int, run func(reserve func(n int) error)) Cost {
	tb.Helper()
	reserved := 0
	return requireCost(tb, func() Bound {
		bound := bound
		if limit := slackBytes + reserved*3/2; bound.HeapBytes == 0 || bound.HeapBytes > limit {
			bound.HeapBytes = limit
		}
		return bound
	}, func() func() {
		reserved = 0
		return func() {
			run(func(n int) error {
				reserved += n
				return nil
			})
		}
	})
}

// RequireDecodeBounded runs a decoder of so many bytes: it may take perByte times as much memory beside a constant, all
// of it reserved, and its profiles must be valid. It returns the decoder's error.
func RequireDecodeBounded(tb testing.TB, inputBytes int, perByte float64,
	decode func(reserve func(n int) error) (pprofile.Profiles, error)) (err error) {
	tb.Helper()
	const constantBytes = 8 << 20 // a parser of JSON leaves that much garbage on a busy machine
	var got pprofile.Profiles
	RequireReserved(tb, BoundOf(inputBytes, constantBytes, perByte), constantBytes, func(reserve func(int) error) {
		got, err = decode(reserve)
	})
	if err == nil {
		require.NoError(tb, Check(got))
	}
	return err
}
