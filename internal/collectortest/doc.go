// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package collectortest runs the collector that `make build` builds as a process of its own: Binary builds it once,
// FreeAddress finds ports for it, Start starts it, and Terminate or Kill end it. It is for tests only.
package collectortest
