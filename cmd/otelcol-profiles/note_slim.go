// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slim && !quickstart

package main

// slimNote is printed by --help, and after errors about components that only the full build has.
const slimNote = "This is the slim build: the full build of otelcol-profiles has more components."
