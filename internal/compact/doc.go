// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package compact makes messages of OTLP profiles in the smallest conformant form: one dictionary without duplicates
// or orphans, equal resources, scopes and sample identities combined, split by encoded bytes if there is a limit. What
// comes out resolves to what went in.
//
// In, from messages of any quality, by Batch.Add:
//
//	import.go      Importer checks a message's dictionary and interns what samples reach
//	clean.go       attribute values: depth, UTF-8; references.go and shared.go: texts that they refer to
//	resources.go   equal resources and scopes become one
//	samples.go     samples of one identity become one
//	estimate.go    how large the batch has become
//
// In, from other formats, by Assembler (assemble.go): indices of its dictionary, combined in the same way.
//
// Out, by Batch.Parts:
//
//	part.go        inOrder, arrange, sizeOf, write
//	subset.go      the entries that a part needs, their indices (order.go) and pdata
//	size.go        encoded sizes
//	split.go       which samples go into which part
//
// It is pure: no clock, no goroutines, no configuration, no logging.
package compact
