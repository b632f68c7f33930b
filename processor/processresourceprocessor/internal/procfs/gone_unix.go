// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package procfs

import (
	"errors"
	"syscall"
)

func isNoProcess(err error) bool { return errors.Is(err, syscall.ESRCH) }
