// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps profiles, and answers queries by time and attributes: it wires what is below.
//
//   - model: what profiles are to a query, and the rules of time
//   - head: a block in memory that grows, and what is known of its series
//   - wal: the log of heads
//   - blockfile: the files of a block on disk
//   - blocks: the directory, the list of live blocks, and what of them is read
//   - compaction: which blocks become one or coarser, and how
//   - answers: the loop of all queries over blocks, and all answers
//
// Add takes any OTLP profiles if there is room (room.go). What arrives becomes a part of the last block in memory.
// Without a directory, the oldest block is dropped as a whole when the memory is full or the window over. With one, a
// block is in the log (log.go) until it is written (flush.go) as files by hour. Every few seconds (maintain.go) these
// become one for each quarter of a day and each day, and coarser after a while, and old ones are deleted.
// docs/store.md has the format.
package store
