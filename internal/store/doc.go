// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps the profiles of the last window in bounded memory, and answers queries by time and attributes.
//
// Add takes any OTLP profiles. What arrives within an eighth of the window, or of the bytes, is an epoch: one dictionary
// (profiledict) and, for each series, chunks: the samples of one profile as columns of varints. A series is a service, a
// profile (profilekind), a sample type and the attributes of a resource. The oldest epoch goes as a whole, and its dictionary
// with it.
//
// A query chooses chunks by a Selection (Selection.terms), each with the weight that its kind asks for: what happened in an
// interval is summed, states are averaged, totals are differenced. It sums values by stack, for each epoch in a dense
// array (sum.go), and makes of the sums a tree of frames (tree.go), or pprof's samples over one dictionary (profiles.go).
package store
