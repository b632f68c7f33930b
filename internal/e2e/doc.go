// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the collector as its users meet it: the binary that `make build` builds, started with the files
// of config/, spoken to over loopback, and judged by what its exporters wrote. It has tests only.
package e2e
