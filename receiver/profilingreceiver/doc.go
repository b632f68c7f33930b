// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profilingreceiver is the receiver `profiling`: the OpenTelemetry eBPF profiler, which samples all processes of a
// Linux machine.
//
// The profiler itself is the receiver of go.opentelemetry.io/ebpf-profiler, with its configuration keys. This package
// decides whether it runs. receiver.go starts it, and tries again if it cannot start; check.go finds out beforehand what
// it lacks, so that the user reads one error that names all of it; consumer.go stands between it and the pipeline. The
// profiler compiles for Linux on amd64 and arm64 only: profiler_linux.go refers to it, profiler_other.go stands in for it
// elsewhere.
package profilingreceiver
