// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps the profiles of the last window in bounded memory, and answers queries by time and attributes.
//
// Add takes any OTLP profiles. What arrives within an eighth of the window, or of the bytes, is a block: one
// dictionary (otlp/dictionary) and, for each series, chunks. A chunk has the samples of one profile as columns of varints.
// A series is a service, a profile (otlp/kind), a sample type and the attributes of a resource and of its profiles, identified by their
// hash. The oldest block is dropped as a whole, with its dictionary.
//
// A query chooses chunks by a Selection (Selection.terms), each with a weight by its kind: values of intervals are
// added up, states are averaged, totals are subtracted from each other. It adds up values by stack, for each block in a
// dense array (sum.go), and makes a tree of frames (tree.go) or pprof's samples over one dictionary (profiles.go) from
// the sums.
package store
