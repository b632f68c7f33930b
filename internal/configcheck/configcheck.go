// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package configcheck collects the faults of a configuration, so that Validate reports all of them at once.
package configcheck

import (
	"errors"
	"fmt"
)

// MaxBytes is the largest value of a limit in bytes: what is computed from a limit must not overflow.
const MaxBytes = 1 << 40

// Faults are the faults found so far. The zero value has none.
type Faults []error

// Require adds a fault unless ok.
func (f *Faults) Require(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// Add adds an error unless it is nil.
func (f *Faults) Add(err error) {
	if err != nil {
		*f = append(*f, err)
	}
}

// Err joins all faults. It is nil if there are none.
func (f Faults) Err() error { return errors.Join(f...) }
