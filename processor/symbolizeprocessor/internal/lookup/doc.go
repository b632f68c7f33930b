// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package lookup remembers what addresses resolve to, and finds out what it does not know, beside the pipeline.
//
// Resolver.Module names a file by its build ids. Resolver.Lookup asks the cache (cache.go), which answers at once. What the
// cache lacks goes to Resolver.Request, and a worker (worker.go) asks the sources in their order. Everything is bounded: the
// cache, the modules that are known, the addresses that wait, the files that are open, and what their tables take.
package lookup
