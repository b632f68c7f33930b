// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package profiletest

import "time"

func processCPU() time.Duration { return 0 }
