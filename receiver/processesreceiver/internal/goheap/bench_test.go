// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package goheap

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// manyBuckets returns the memory of a program with stacks of 32 frames.
func manyBuckets(n int) []byte {
	const depth = 32
	var buckets [][]byte
	for i := range n {
		stack := make([]uint64, depth)
		for k := range stack {
			stack[k] = uint64(i>>k&1 + 2*k + 1)
		}
		next := uint64(firstBucket + (i+1)*(6*8+8*depth+16*8))
		if i == n-1 {
			next = 0
		}
		buckets = append(buckets, bucketBytes(Memory, next, 64, stack, objects(64, 2, 1)...))
	}
	return image(512, buckets...)
}

// BenchmarkRead reads 10,000 buckets: for the first time, and those that are kept.
func BenchmarkRead(b *testing.B) {
	memory := manyBuckets(10_000)
	for name, keep := range map[string]bool{"first": false, "kept": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			r := Reader{Program: madeUp, MaxBuckets: 10_000, Keep: func(int) bool { return keep }}
			for b.Loop() {
				profiles, _, err := r.Read(bytes.NewReader(memory))
				require.NoError(b, err)
				require.Len(b, profiles[0].Buckets, 10_000)
			}
		})
	}
}

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
