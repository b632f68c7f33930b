// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package otep239 measures OTLP profiles against the representations that OTEP 239 compared when the data model was chosen.
// All of it is in tests: `make bench BENCH=OTEP239`.
//
//	wire_test.go      protobuf by struct tags
//	messages_test.go  the messages of pprof, denormalized, normalized, arrays and pprofextended
//	convert_test.go   a parsed pprof → each of them
//	inputs_test.go    generated stand-ins for the OTEP's profiles, and captures
//	bench_test.go     the OTEP's columns for each
package otep239
