// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpprofilesreceiver is the receiver `otlp_profiles`: OTLP profiles over gRPC and HTTP, of every layout that
// was ever released.
//
// grpc.go or http.go receives a request's bytes. receiver.go admits them, has internal/otlplayouts convert them to
// today's layout, and passes the profiles on.
package otlpprofilesreceiver
