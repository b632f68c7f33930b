// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package profiletest

// raceSlowdown is how much longer code may take under the race detector.
const raceSlowdown = 10
