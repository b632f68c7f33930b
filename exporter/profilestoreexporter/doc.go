// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profilestoreexporter is the exporter `profile_store`: it keeps profiles in memory and on disk
// (internal/store), and serves them as a page of flame graphs, as JSON and as pprof (internal/store/api, page).
package profilestoreexporter
