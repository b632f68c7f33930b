// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package goheap

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeptBuckets: a bucket that is kept is read anew if another one is in its place, and all are forgotten together.
func TestKeptBuckets(t *testing.T) {
	kept := 0
	r := Reader{Program: madeUp, MaxBuckets: 10, Keep: func(n int) bool { kept += n; return true }}
	readAgain := func(memory []byte) *Bucket {
		profiles, _, err := r.Read(bytes.NewReader(memory))
		require.NoError(t, err)
		return profiles[0].Buckets[0]
	}
	first := readAgain(image(512, bucketBytes(Memory, 0, 64, []uint64{1, 2}, objects(64, 2, 1)...)))
	require.Same(t, first, readAgain(image(512, bucketBytes(Memory, 0, 64, []uint64{1, 2}, objects(64, 5, 1)...))))
	require.EqualValues(t, 5, first.Allocs)
	other := readAgain(image(512, bucketBytes(Memory, 0, 64, []uint64{1, 3}, objects(64, 2, 1)...)))
	require.Equal(t, []uint64{1, 3}, other.Stack)
	require.Equal(t, kept, r.Forget(), "the other is not kept")
}
