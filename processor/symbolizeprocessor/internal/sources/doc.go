// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package sources finds the file that has the symbols of a mapping: the mapped file itself (files.go), debug
// directories (debugdirs.go), debuginfod servers (debuginfod.go) and a directory of uploaded files (uploads.go).
//
// Whoever sends profiles, and whoever runs in a container, chooses names and contents here. So openFile alone opens
// files: below a root that symbolic links cannot leave, and regular files only. What is opened counts if its build
// ids are those that the mapping states.
package sources
