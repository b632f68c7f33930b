// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package symbols turns addresses of an ELF file into frames.
//
// In: a file as an io.ReaderAt, and addresses. Out: for each address its frames, innermost first. The steps, by the
// names of the functions:
//
//  1. Open reads the headers and the build ids. Image.Matches reports whether it is the build that a mapping names.
//  2. Image.Address turns an offset in the file into a virtual address.
//  3. Image.Resolve asks the tables that the file has, the best one first: Go's pclntab (pclntab.go), DWARF if lines
//     are wanted (dwarf.go), .symtab, MiniDebugInfo and .dynsym (symtab.go, minidebug.go).
//  4. Demangle makes a readable name of a linker's name.
//
// Files come from containers, which are not trusted. Files are not mapped into memory: a file that shrinks while it is
// read is an error, not a signal. Only the sections that are needed are read. Limits bounds the memory, and
// a meter the work of one call. The standard library's debug/elf, debug/dwarf and debug/gosym are for trusted files: a
// few bytes make them allocate without a bound (docs/decisions has examples). Tests compare the results with theirs.
package symbols
