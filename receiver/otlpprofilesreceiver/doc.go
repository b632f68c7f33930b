// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpprofilesreceiver is the receiver `otlp_profiles`: OTLP profiles over gRPC and HTTP, of every layout that
// was ever released.
//
// internal/service/otlpserver receives a request. receiver.go has internal/otlp/layouts convert it to today's layout,
// and passes the profiles on.
package otlpprofilesreceiver
