// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hotspot

import "errors"

// Errors of JVMs that cannot be profiled.
var (
	// ErrUnsupported is returned for a virtual machine other than HotSpot.
	ErrUnsupported = errors.New("not supported")
	// ErrDisabled is returned for a JVM that nobody may attach to.
	ErrDisabled = errors.New("attaching is disabled")
	// ErrNoRecorder is returned for a JVM without Flight Recorder, or one that cannot write its files.
	ErrNoRecorder = errors.New("no recording")
	// ErrNoAnswer is returned for a JVM that did not answer in time.
	ErrNoAnswer = errors.New("the JVM does not answer")
	// ErrMalformed is returned for an answer or a file that is not as it should be.
	ErrMalformed = errors.New("malformed")
)
