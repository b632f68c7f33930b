// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package hostdetectionprocessor is the processor `resource_detection` of the slim build: the part of Collector contrib's that a
// plain host needs. The full build has contrib's processor, which includes the SDKs of every cloud.
//
// Start runs the detectors once, in their order, and keeps what they found. ConsumeProfiles adds that to every resource. Keys
// have the meaning and the defaults that they have in contrib's processor; a key that is missing here is an error.
package hostdetectionprocessor
