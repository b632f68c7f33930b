// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofencode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// noon is when the tests' profiles arrive.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func testConfig() Config {
	return Config{Window: time.Hour, Resolution: 10 * time.Second, MaxBytes: 64 << 20, MaxSeries: 100}
}

// encode returns the one pprof that profiles make.
func encode(t testing.TB, pd pprofile.Profiles) *profile.Profile {
	t.Helper()
	encoded, _, err := pprofencode.Encode(pd)
	require.NoError(t, err)
	require.Len(t, encoded, 1)
	p, err := profile.ParseUncompressed(encoded[0].Bytes)
	require.NoError(t, err)
	return p
}

// What came in as one pprof goes out as it was, all its sample types together.
func TestCapturedProfilesComeOutAsTheyWere(t *testing.T) {
	files, err := filepath.Glob("../../testdata/pprof/*.pb.gz")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 13)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			payload, err := os.ReadFile(file)
			require.NoError(t, err)
			want, err := profile.ParseData(payload)
			require.NoError(t, err)
			pd, _, err := pprofconv.Decode(payload, pprofconv.DecodeOptions{})
			require.NoError(t, err)
			s := New(testConfig())
			added := s.Add(pd, noon)
			require.Zero(t, added.Refused)
			require.NotZero(t, added.Samples)
			names := map[string]bool{}
			for _, p := range s.Profiles(UnknownService) {
				names[p.Profile] = true
			}
			require.Len(t, names, 1, "one pprof is one profile: %v", names)
			for name := range names {
				merged, err := s.Merge(context.Background(), Selection{Service: UnknownService, Profile: name}, ProfilesOptions{})
				require.NoError(t, err)
				assert.NoError(t, profiletest.EqualPprof(want, encode(t, merged.Profiles), profiletest.CanonicalLinks()))
			}
		})
	}
}
