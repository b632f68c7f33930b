// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package chaos breaks what surrounds the built collector, and the collector itself, and checks what
// docs/reliability.md promises. It has tests only; `make chaos`, `make soak` and `make limits` run them.
//
// TestLimits sends each shipped configuration the worst inputs (attacks_test.go, feeds_test.go, readers_test.go) beside
// honest users (honest_test.go), and watches its memory (watch_test.go).
//
// A scenario starts nodes (node_test.go) with the configurations of config/, senders (traffic_test.go) and a backend
// (backend_test.go). Every sample carries its sender and a number. The ledger (ledger_test.go) compares what was
// acknowledged with what arrived. A proxy (proxy_test.go) breaks connections.
package chaos
