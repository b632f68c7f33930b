// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"testing"
)

// ReadFile reads a file, and undoes its compression by gzip.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil && bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		var plain *gzip.Reader
		if plain, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			data, err = io.ReadAll(plain)
		}
	}
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	return data
}
