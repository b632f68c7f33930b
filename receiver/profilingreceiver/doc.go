// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profilingreceiver is the receiver `profiling`: the OpenTelemetry eBPF profiler, which samples all processes of a
// Linux machine.
//
// The profiler itself is the receiver of go.opentelemetry.io/ebpf-profiler, with its configuration keys. This package
// decides whether it runs. receiver.go starts it, and tries again if it cannot start; check.go finds out first what the
// profiler lacks, so that one error names all of it; consumer.go is between the profiler and the pipeline. The profiler
// compiles for Linux on amd64 and arm64 only: profiler_linux.go refers to it, and profiler_other.go replaces it
// elsewhere.
package profilingreceiver
