// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostdetectionprocessor is the processor `resource_detection` of the slim build: what a plain host needs of Collector
// contrib's, which the full build has and which brings the SDKs of every cloud with it.
//
// Start runs the detectors once, in their order, and keeps what they found. ConsumeProfiles adds that to the resource of
// every message. The keys that are there mean what they mean in contrib's, with its defaults; every other one is an error.
package hostdetectionprocessor
