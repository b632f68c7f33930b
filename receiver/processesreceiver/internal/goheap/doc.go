// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package goheap reads the memory, block and mutex profiles of a Go program out of its memory, and writes them as the
// program's own endpoint would: as pprof.
//
// Go's runtime keeps a record ("bucket") for each stack that allocated or waited, in three lists. Their layout is the
// same from Go 1.18 to 1.26. The steps:
//
//	Find        finds the variables that are needed, in the code of functions of the runtime that refer to them (find.go, code.go):
//	            every Go program has a table of its functions, stripped or not
//	Reader.Read reads the lists (buckets.go) by way of a cache of memory (memory.go)
//	Names       turns addresses into functions (names.go)
//	Write       writes a list as pprof, with the sampling undone as runtime/pprof does (write.go)
//
// The memory and the file are hostile input. A bucket counts only if its hash is that of its stack and size, as the
// runtime computes it, and if its bytes are its objects × its size. So a layout that is not known, a wrong variable
// and a record that changes while it is read are errors instead of wrong numbers. Reading does not stop the program.
package goheap
