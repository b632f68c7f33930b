// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// hugePayload is larger than a request may be.
const hugePayload = "go-compile-nethttp-heap-huge.pb.gz"

// capturedPayloads returns the pprof files of testdata, by name.
func capturedPayloads(t *testing.T) map[string][]byte {
	t.Helper()
	files := profiletest.Glob(t, filepath.Join(repository, "testdata", "pprof", "*.pb.gz"))
	payloads := map[string][]byte{}
	for _, file := range files {
		payload := profiletest.FileBytes(t, file)
		payloads[filepath.Base(file)] = payload
	}
	return payloads
}

// requireIdentity requires the resource attribute that push asks for, and one scope with a name.
func requireIdentity(t *testing.T, pd pprofile.Profiles) {
	t.Helper()
	resource := pd.ResourceProfiles().At(0)
	region, found := resource.Resource().Attributes().Get("region")
	require.True(t, found)
	require.Equal(t, "eu", region.Str())
	require.Equal(t, 1, resource.ScopeProfiles().Len())
	require.NotEmpty(t, resource.ScopeProfiles().At(0).Scope().Name())
}

// requireSame requires that pd equals the payload: by the sums in OTLP, and, as pprof again, sample by sample.
func requireSame(t *testing.T, payload []byte, pd pprofile.Profiles) {
	t.Helper()
	want := profiletest.ParsePprof(t, payload)
	require.Equal(t, sumsOfPprof(t, payload), sumsOfOTLP(profilesIn(pd)))

	encoded, _, err := encode.Encode(pd)
	require.NoError(t, err)
	require.Len(t, encoded, 1)
	got := profiletest.ParsePprof(t, encoded[0].Bytes)
	require.NoError(t, profiletest.EqualPprof(want, got, profiletest.StrictZero()))
}
