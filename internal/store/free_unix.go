// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package store

import (
	"math"
	"syscall"
)

// freeBytes returns how many bytes a directory's disk has room for, as far as that is known.
func freeBytes(dir string) int64 {
	var stat syscall.Statfs_t
	if syscall.Statfs(dir, &stat) != nil {
		return math.MaxInt64
	}
	size := uint64(stat.Bsize)
	return int64(min(stat.Bavail, math.MaxInt64/size) * size)
}
