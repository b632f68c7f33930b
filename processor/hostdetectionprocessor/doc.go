// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostdetectionprocessor is the processor `resource_detection`: the part of Collector contrib's that needs no
// SDK of a cloud. Whoever needs a cloud's detectors builds with contrib's in its place (builder-config.yaml).
//
// Start runs the detectors once, in their order, and keeps what they found, which is then added to every resource. Keys
// have the meaning and the defaults that they have in contrib's processor; a key that is missing here is an error.
package hostdetectionprocessor
