// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package symbolizeprocessor is the processor `symbolize`: it gives functions to locations that have an address alone.
//
// What an address resolves to is package internal/symbols; which file has the symbols, and the cache, are the packages
// in internal/. Here are the message (message.go), what is written into its dictionary (write.go), configuration and metrics.
package symbolizeprocessor
