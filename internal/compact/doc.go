// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package compact gathers OTLP profiles of any quality into a Batch, which gives them back in the
// smallest conformant form: one dictionary without duplicates or orphans, equal resources and scopes and equal
// sample identities combined, split by encoded bytes where a limit asks for it. What comes out
// resolves to what went in.
//
// It is pure: no clock, no goroutines, no configuration, no logging.
package compact
