// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profilestologsconnector passes profiles to logs pipelines, as log records that carry them, so that any
// exporter of logs can deliver them.
package profilestologsconnector
