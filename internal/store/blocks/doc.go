// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package blocks has the directory of blocks: which are live, and their files.
//
// A manifest, blocks.json, names the live blocks. It is replaced as a whole, by renaming, when blocks are written,
// joined or deleted: a process that ends meanwhile leaves the list of before or that of afterwards. A block is complete
// and durable before it is in the list, and is deleted after it has left it. So what the list does not name is rubbish,
// which Load deletes. A block whose bytes are wrong is moved to the folder damaged. Without a list that can be read,
// all blocks are live: nothing is deleted that may be the only copy.
//
// Block is one of them as a model.Block. Its services are in memory; their series are read when they are needed
// (series.go), profiles and samples some thousand at a time (part.go).
package blocks
