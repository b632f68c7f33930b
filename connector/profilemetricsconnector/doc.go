// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profilemetricsconnector counts what profiles say, whatever backend they go to: CPU seconds by service, allocated bytes, live
// heap, the share of the hottest functions, and how much it has grown. It is a consumer of profiles and a source of metrics.
//
// internal/selection says which samples are in which metric, internal/reduce makes sums of one message, internal/series keeps them until they
// are sent, and internal/hot has the functions with the largest shares, and compares them with earlier ones.
package profilemetricsconnector
