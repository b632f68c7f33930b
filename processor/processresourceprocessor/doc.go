// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package processresourceprocessor is the processor `process_resource`: it moves samples to a resource for each executable,
// process or container, and names its service.
//
// Moving is package internal/regroup, reading /proc internal/procfs, names internal/servicename. Here are configuration,
// the order of sources (identify.go), bounds over time (known.go) and metrics.
package processresourceprocessor
