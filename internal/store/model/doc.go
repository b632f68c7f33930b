// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package model has the words that all of the store shares: what profiles are to a query.
//
// A Block is profiles that do not change any more; what a query sees of the head, of a directory and of an engine are
// implementations of it. A Part reads what a Block has of one service: series, then profiles without their samples,
// then samples in columns; an Adder adds these up where they are. A Selection chooses among them. The rules of time for
// each kind of values are functions (times.go) of a profile, a selection and, for states, the next profile alone.
// Memory is what a query has reserved.
//
// Profile, Meta and BlockSeries are what is kept of profiles wherever they are: in memory, in the log and on disk.
package model
