// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profiledict builds the dictionary of OTLP profiles: seven tables whose entries are
// interned by value, each with its zero value at index 0 (opentelemetry-proto,
// profiles/v1development/profiles.proto, message ProfilesDictionary).
//
// Entries are kept in flat slices of comparable structs and found again by hash plus equality;
// pdata is written once, at the end. A Dictionary is not safe for concurrent use. It may be
// used again after Reset, which keeps its memory.
package profiledict
