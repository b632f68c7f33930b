// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the collector as its users run it: `make build` builds the binary, it runs with the files of
// config/, the tests send to it over loopback, and check what its exporters write. It has tests only.
//
// A test starts collectors (collector_test.go) and sends to them over HTTP (http_test.go) or gRPC. What arrives is read
// from the files of the file exporter (output_test.go) or from a backend (backend_test.go), profile by profile
// (messages_test.go). Other programs run by run_test.go. Tests that need npm, a browser, eBPF, a container or an API
// server run only if their target of the Makefile sets a variable.
package e2e
