// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profilingreceiver is the receiver `profiling`: the OpenTelemetry eBPF profiler, which samples all processes
// of a Linux machine.
//
// The profiler itself is the receiver of go.opentelemetry.io/ebpf-profiler, with its configuration keys. receiver.go
// starts it, and retries if it cannot start. check.go first finds all missing requirements, so that one error names
// all of it. consumer.go passes the profiler's reports to the pipeline. The profiler compiles only for Linux on amd64
// and arm64: profiler_linux.go refers to it, and profiler_other.go replaces it elsewhere.
package profilingreceiver
