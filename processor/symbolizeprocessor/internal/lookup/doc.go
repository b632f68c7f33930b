// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package lookup resolves addresses in the background, and remembers the results.
//
// Resolver.Module names a file by its build ids. Resolver.Lookup reads the cache (cache.go) and returns at once.
// Addresses that are not there go to Resolver.Request, and a worker (worker.go) tries the sources in their order. If a
// file has to be downloaded first, the search is suspended meanwhile: workers never wait for a server. Everything is
// bounded: the cache, the known modules, the waiting addresses, the open files, and the memory of their tables.
package lookup
