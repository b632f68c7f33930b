// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pprofexporter is the exporter `pprof`: it keeps the profiles of the last window in memory (internal/store), serves
// them as a page of flame graphs, as JSON and as pprof (internal/store/api, page), and writes them to pprof files
// (internal/files).
package pprofexporter
