// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package profiletest

import "time"

// ProcessCPU returns 0: the system does not report processor time.
func ProcessCPU() time.Duration { return 0 }
