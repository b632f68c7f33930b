// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package resolved looks at OTLP profiles by what their indices refer to, independent of the layout of their
// dictionary.
//
//	Check     the rules of the format, each fault with its path: check*.go, references.go
//	Render    profiles as text with names instead of indices: render.go, names.go, values.go
//	Resolver  an ID for each entry, equal for entries of equal content: resolve.go, space.go
//
// Marshalling profiles that are not read-only moves the strings of resource and scope attributes
// into the dictionary and hides them from its own accessors. Check or render before marshalling, or mark the profiles
// read-only first.
package resolved
