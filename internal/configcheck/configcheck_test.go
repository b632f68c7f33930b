// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFaults(t *testing.T) {
	var faults Faults
	faults.Require(true, "`a` must be positive, found %d", 1)
	faults.Add(nil)
	require.NoError(t, faults.Err())
	faults.Require(false, "`b` must be positive, found %d", -1)
	faults.Require(false, "`c` must be readable: %w", io.EOF)
	faults.Add(errors.New("`d` must be set"))
	require.EqualError(t, faults.Err(), "`b` must be positive, found -1\n`c` must be readable: EOF\n`d` must be set")
	require.ErrorIs(t, faults.Err(), io.EOF)
}
