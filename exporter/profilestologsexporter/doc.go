// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profilestologsexporter delivers OTLP profiles to peers that may not take them: where a peer has no profiles
// service, the same data goes out as log records that carry it.
package profilestologsexporter
