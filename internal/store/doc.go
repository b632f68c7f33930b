// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps profiles, and answers queries by time and attributes.
//
// Add takes any OTLP profiles. What arrives becomes a block in memory: one dictionary (otlp/dictionary) and, for each
// series, chunks. A chunk is one profile, with its samples as columns of varints. A series is a service, a profile
// (otlp/kind), a sample type and the attributes of a resource and of its profiles, identified by their hash. Without a
// directory, the oldest block is dropped as a whole when the memory is full or the window over. With one, a block,
// called a head, is in the log (log.go, package wal) until it is written (flush.go) as files by hour. Every few seconds
// (maintain.go) these become one for each quarter of a day and each day, and coarser after a while (package
// compaction), and old ones are deleted. Package blocks has the directory and the list of live blocks, package
// blockfile the files of one, docs/store.md the format. Memory has the services of blocks on disk; their series are
// read when they are needed (index.go).
//
// A query (Source, Querier) reads a view: the blocks as they are when it begins. It holds no lock. A Block (part.go) is
// a snapshot of what is in memory (snapshot.go), one on disk (load.go), or what an engine lists; a Part is what it has
// of a service. One loop (scan.go) goes over them, oldest first: it opens a part, reads the profiles of the selected
// series some thousand at a time, weighs them, passes on those that count, and closes the part. It does so twice: first
// without samples (plan.go), since how a profile counts can depend on all others, then with them (read.go). Values are
// added up by stack, for each part in a dense array (sum.go). The answers are made of these: a tree of frames
// (tree.go), a pprof's samples over one dictionary (profiles.go), a line over time (timeline.go), a heat map, events,
// lists. So the memory of a query follows from one block and from its answer, not from its range. Each kind of values
// (otlp/kind) has one rule, so that no answer depends on profiles outside of the selection, nor on how profiles are
// spread over blocks:
//
//   - Delta: what happened in [time, time+duration). It counts by the part of that time that is selected.
//   - Gauge: the state at a time. It holds until the next one of its series if that comes within two intervals,
//     otherwise for one (states.go). Over a range it is averaged: each one counts by the part of the range for which it
//     holds. - Cumulative: made a delta when it arrives, of the time since the profile before of its series
//     (totals.go). A sum that falls begins anew. The first one is a baseline, which counts only where nothing else is
//     selected.
//
// An engine that has profiles as rows of samples (engine.go) lists those of a query as one block without samples. The
// same rules choose among them, and the engine adds up their samples (engine_rows.go), by their own attributes where
// these count (engine_attributes.go).
package store
