// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package head has what grows: profiles that arrived and are not on disk yet.
//
// A Block has one dictionary, series, and for each profile a Chunk: its fields, and its samples as columns of varints.
// An Adder reads messages into it. Known is what is known of series besides their profiles: it makes totals deltas of
// the time since the profile before (totals.go), and finds out for how long states hold. The records of the log
// (records.go) have what a message adds, and Replay reads them. SnapshotOf returns a Block as it is now, as a
// model.Block that queries read while profiles are added. Source is what of a Block goes to one on disk. Nothing here
// locks: the store adds to its last Block, and freezes it when it is full.
package head
