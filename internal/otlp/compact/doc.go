// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package compact writes messages of OTLP profiles in the smallest conformant form: one dictionary without duplicates
// and orphans, with equal resources, scopes and sample identities combined, and split by encoded bytes if there is a
// limit. The output resolves to the same profiles as the input.
//
// Input from OTLP messages, which may be malformed, by Batch.Add:
//
//	import.go      Importer checks a message's dictionary and interns what samples refer to
//	clean.go       checks and repairs attribute values; references.go and shared.go: strings that they refer to
//	resources.go   combines equal resources and scopes
//	samples.go     combines samples of one identity
//
// Input from other formats, by Assembler (assemble.go), whose samples refer to its dictionary.
//
// Output by Batch.Parts:
//
//	part.go        inOrder, arrange, write
//	subset.go      the entries that a part needs, and their indices (order.go)
//	size.go        encoded sizes, and the estimate for the batch while it grows
//	split.go       cuts a batch into pieces of a bounded encoded size
//	piece.go       cuts a piece; callers whose limit is another than the encoded size cut pieces themselves
//
// It is pure: no clock, no goroutines, no configuration, no logging.
package compact
