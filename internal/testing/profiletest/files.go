// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// FileBytes returns the bytes of a file.
func FileBytes(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// Glob returns the files of a pattern, of which there must be some.
func Glob(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, paths, pattern)
	return paths
}

// ParsePprof parses a pprof by pprof's own package.
func ParsePprof(t testing.TB, data []byte) *profile.Profile {
	t.Helper()
	p, err := profile.ParseData(data)
	require.NoError(t, err)
	return p
}

// ReadFile reads a file, and undoes its compression by gzip.
func ReadFile(t testing.TB, path string) []byte {
	t.Helper()
	data := FileBytes(t, path)
	if bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		return Gunzip(t, data)
	}
	return data
}

// Gzip compresses as programs do.
func Gzip(plain []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(plain) // a buffer accepts everything
	_ = w.Close()
	return b.Bytes()
}

// Gunzip undoes what Gzip does.
func Gunzip(t testing.TB, packed []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	plain, err := io.ReadAll(r)
	require.NoError(t, err)
	return plain
}

// Clone returns a copy of profiles.
func Clone(pd pprofile.Profiles) pprofile.Profiles {
	own := pprofile.NewProfiles()
	pd.CopyTo(own)
	return own
}

// Marshal returns profiles as a message of protobuf. It leaves them as they are, while marshalling itself leaves
// references in the attributes of resources and scopes.
func Marshal(t testing.TB, pd pprofile.Profiles) []byte {
	t.Helper()
	wire, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(Clone(pd))
	require.NoError(t, err)
	return wire
}

// Unmarshal returns the profiles of a message of protobuf.
func Unmarshal(t testing.TB, wire []byte) pprofile.Profiles {
	t.Helper()
	pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(wire)
	require.NoError(t, err)
	return pd
}
