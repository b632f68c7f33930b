// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package size

const (
	Factor     = factor
	MaxNesting = maxNesting
)
