// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package file

import (
	"io/fs"
	"syscall"
)

// inode identifies a file, regardless of its paths.
type inode struct{ device, number uint64 }

func inodeOf(info fs.FileInfo) (inode, bool) {
	stat, found := info.Sys().(*syscall.Stat_t)
	if !found {
		return inode{}, false
	}
	return inode{device: uint64(stat.Dev), number: stat.Ino}, true //nolint:unconvert // Dev is an int32 on some systems
}
