// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package compaction makes one block of several, and coarser blocks of old ones.
//
// Plan decides, from a list of blocks and the time alone, which of them become one. Merge makes the new block. It is a
// merge of sorted streams: blocks have their services, their series, and the profiles of a series in order, so that all
// of them are read once from the beginning to the end, and written as they are read. In memory are the dictionary of
// one service, a page of each column of each source, and, if the new block is coarser, the sums of one step of one
// series.
package compaction
