// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofconv

import (
	"errors"
	"fmt"
)

// ErrTooLarge is wrapped by the error for a payload that exceeds a limit.
var ErrTooLarge = errors.New("payload exceeds a limit")

// FormatError says that a payload is not a pprof protobuf that can be read.
type FormatError struct {
	// Seems names what the payload appears to be instead, for example "a Go execution trace",
	// or is empty where it appears to be a damaged pprof.
	Seems string
	// Err is the underlying fault; it may be nil where Seems says it all.
	Err error
}

func (e *FormatError) Error() string {
	switch {
	case e.Seems == "":
		return fmt.Sprintf("not a readable pprof: %v", e.Err)
	case e.Err == nil:
		return "not a pprof protobuf: it seems to be " + e.Seems
	default:
		return fmt.Sprintf("not a pprof protobuf: it seems to be %s: %v", e.Seems, e.Err)
	}
}

func (e *FormatError) Unwrap() error { return e.Err }
