// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package blockfile writes and reads blocks: profiles of an hour or a day in a directory that does not change once it
// is there. docs/store.md describes the files, which are a promise: engines that read Parquet can query them.
//
//	index.json          its services and where their rows are, and the size and checksum of each file
//	samples.parquet     a row for each value, sorted by service, series and start
//	profiles.parquet    a row for each profile, in the same order
//	series.parquet      a row for each series, with where its rows are, and its labels
//	stacks.parquet      a row for each stack, with its frames
//	attributes.parquet  a row for each attribute of a set of attributes
//	dictionaries.zst    for each service, its stacks and attributes as dictionary.AppendSince writes them, compressed by zstd
//
// The Parquet files have all samples and what SQL asks for. The dictionaries have what a lossless pprof needs besides:
// mappings, columns, attributes of locations.
package blockfile
