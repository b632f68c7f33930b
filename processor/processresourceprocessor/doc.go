// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package processresourceprocessor is the processor `process_resource`: it moves samples to a resource for each
// executable, process or container, and names its service.
//
// internal/regroup moves samples, internal/procfs reads /proc, and internal/servicename finds names. This package has
// the configuration, the order of the sources (identify.go), the limit on resources over time (known.go) and the
// metrics.
package processresourceprocessor
