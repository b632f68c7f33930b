// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profilemetricsconnector turns profiles into metrics, for any metrics backend: CPU seconds by service,
// allocated bytes, live heap, the share of the hottest functions, and how much that share has grown.
//
// internal/selection decides which samples belong to which metric, internal/reduce sums up one message, internal/series
// keeps the sums until they are sent, and internal/hot tracks the functions with the largest shares and compares them
// with earlier ones.
package profilemetricsconnector
