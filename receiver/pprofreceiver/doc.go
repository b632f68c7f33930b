// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pprofreceiver receives pprof profiles and hands them on as OTLP profiles. It takes them
// pushed over HTTP, scraped from one URL or from all that discovery finds, read from files, or recorded
// from the collector itself.
//
// Every source ends in the same path: the payload's bytes and its identity (resource attributes)
// are decoded, given their resource and scope, and delivered to the next consumer. Each source is a package:
// internal/push, remote, scrape (with targets), file and self; internal/ingest is what they share.
package pprofreceiver
