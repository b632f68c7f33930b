// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package symbolizeprocessor is the processor `symbolize`: it adds functions to locations that have only an address.
//
// The repository's internal/symbols resolves addresses of a file. internal/sources finds the file, and internal/lookup
// has the workers and the cache. This package reads the message (message.go), writes into its dictionary (write.go),
// and has configuration and metrics.
package symbolizeprocessor
