// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package dictionarydedupprocessor is the processor `dictionary_dedup`: it merges profiles of several requests into
// batches, each with the smallest conformant dictionary, and splits them by encoded bytes.
//
// What happens to profiles is package internal/compact; here are configuration, batching over time,
// client metadata, backpressure and metrics.
package dictionarydedupprocessor
