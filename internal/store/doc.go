// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps the profiles of the last window in bounded memory, and answers queries by time and attributes.
//
// Add takes any OTLP profiles. What arrives within an eighth of the window, or of the bytes, is a block: one
// dictionary (otlp/dictionary) and, for each series, chunks. A chunk has the samples of one profile as columns of varints.
// A series is a service, a profile (otlp/kind), a sample type and the attributes of a resource and of its profiles, identified by their
// hash. The oldest block is dropped as a whole, with its dictionary.
//
// A query reads a view: the blocks as they are when it begins. It holds no lock. It chooses chunks by a Selection (view.choose), adds up
// values by stack, for each block in a dense array (sum.go), and makes a tree of frames (tree.go) or pprof's samples over one dictionary
// (profiles.go) from the sums. Each kind of values (otlp/kind) has one rule, so that no answer depends on profiles outside of the
// selection:
//
//   - Delta: what happened in [time, time+duration). It counts by the part of that time that is selected.
//   - Gauge: the state at a time. It holds until the next one of its series if that comes within two intervals, otherwise for one. Over a
//     range it is averaged: each one counts by the part of the range for which it holds.
//   - Cumulative: made a delta when it arrives, of the time since the profile before of its series (totals.go). A sum that falls begins
//     anew. The first one is a baseline, which counts only where nothing else is selected.
package store
