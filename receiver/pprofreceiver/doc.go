// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pprofreceiver receives profiles as pprof or in other formats, and passes them on as OTLP profiles. They are
// pushed over HTTP, scraped from one URL or from all targets that discovery finds, read from files, or recorded from
// the collector itself.
//
// Each source is a package: internal/push, remote, scrape (with targets), file and self. All of them pass payloads,
// with the identity (resource attributes) of the sender, to internal/ingest. It decodes a payload, sets resource and
// scope, and delivers the profiles to the next consumer.
package pprofreceiver
