// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pools checks everything in the product that keeps memory from one sender for the next: a test finds all pools
// in the sources, and drives each with every kind of input, in the middle of which it ends half of the requests.
package pools
