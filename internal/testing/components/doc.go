// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package components tests what all components of this repository have in common: their metadata, their life cycle, and
// the configurations in their READMEs.
package components
