// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package sources finds the file that has the symbols of a mapping: the mapped file itself (files.go), debug
// directories (debugdirs.go), debuginfod servers (debuginfod.go) and a directory of uploaded files (uploads.go).
//
// Senders of profiles and processes in containers choose the names and contents of these files. So only openFile opens
// files: below a root that symbolic links cannot leave, and regular files only. A file is used only if its build ids
// are those of the mapping.
package sources
