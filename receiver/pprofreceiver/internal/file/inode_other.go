// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package file

import "io/fs"

// inode identifies a file on systems that have inodes.
type inode struct{}

func inodeOf(fs.FileInfo) (inode, bool) { return inode{}, false }
