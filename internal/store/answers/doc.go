// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package answers computes the answers of all queries from blocks.
//
// A query (Source, Querier) reads a View: the blocks as they are when it begins. It holds no lock. One loop (scan.go)
// goes over them, oldest first: it opens a part, reads the profiles of the selected series some thousand at a time,
// weighs them by the rules of package model, passes on those that count, and closes the part. It does so twice: first
// without samples (plan.go), since how a profile counts can depend on all others, then with them (read.go). So the
// memory of a query follows from one block and from its answer, not from its range.
//
// Values are added up by stack, for each part in a dense array (sum.go), or by a part whose samples are elsewhere
// (added.go). The answers are made of these: a tree of frames (tree.go), a pprof's samples over one dictionary
// (profiles.go), a line over time (timeline.go), a heat map, events, lists. Each kind of values (otlp/kind) has one
// rule, so that no answer depends on profiles outside of the selection, nor on how profiles are spread over blocks:
//
//   - Delta: what happened in [time, time+duration). It counts by the part of that time that is selected.
//   - Gauge: the state at a time. It holds until the next one of its series if that comes within two intervals,
//     otherwise for one (states.go). Over a range it is averaged: each one counts by the part of the range for which it
//     holds.
//   - Cumulative: made a delta when it arrives. A sum that falls begins anew. The first one is a baseline, which counts
//     only where nothing else is selected.
//
// An engine that has profiles as rows of samples (engine.go) lists those of a query as one block, whose parts ask it
// for sums of their samples (engine_part.go).
package answers
