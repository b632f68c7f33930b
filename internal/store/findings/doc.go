// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package findings looks at the profiles of a service for what an experienced reader would point at: a function that
// has grown since the last version or since yesterday, much garbage collection, waiting for locks, patterns that are
// compiled again and again, and goroutines that only become more. Each rule is a sentence that a person can check
// (rules.go), with a bound below which it is silent. Of is the entry: the page and assistants show what it returns.
package findings
