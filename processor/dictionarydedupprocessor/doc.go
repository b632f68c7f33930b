// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package dictionarydedupprocessor is the processor `dictionary_dedup`: it merges profiles of several requests into
// batches, each with the smallest conformant dictionary, and splits them by encoded bytes.
//
// Package internal/otlp/compact processes the profiles. This package adds configuration, batching over time, client
// metadata, backpressure and metrics.
package dictionarydedupprocessor
