// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
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

func TestRequireURL(t *testing.T) {
	for address, shown := range map[string]string{
		"http://localhost:4040": "", "https://u:secret@host/path?token=x": "",
		"": "", "localhost:4040": "localhost:4040", "ftp://host": "ftp://host", "http://": "http://",
		"http://host:port":            "http://host:port",
		"http://u:se cret@host":       redact.Placeholder,
		"ftp://u:secret@host?token=x": "ftp://REDACTED:REDACTED@host?token=REDACTED",
	} {
		var faults Faults
		faults.RequireURL("endpoint", address)
		if shown == "" && address != "" {
			require.NoError(t, faults.Err())
			continue
		}
		require.EqualError(t, faults.Err(),
			fmt.Sprintf("`endpoint` must be an http or https URL with a host, found %q", shown))
	}
}
