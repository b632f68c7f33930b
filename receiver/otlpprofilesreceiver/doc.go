// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpprofilesreceiver is the receiver `otlp_profiles`: OTLP profiles over gRPC and HTTP, of every layout that
// was ever released.
//
// A request's bytes arrive by grpc.go or http.go; receiver.go admits them, hands them to internal/otlplayouts, which
// returns today's layout, and passes the profiles on.
package otlpprofilesreceiver
