// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
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
	files, err := filepath.Glob(filepath.Join(repository, "testdata", "pprof", "*.pb.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	payloads := map[string][]byte{}
	for _, file := range files {
		payload, err := os.ReadFile(file)
		require.NoError(t, err)
		payloads[filepath.Base(file)] = payload
	}
	return payloads
}

// TestPushedProfilesArriveWhole pushes every captured payload by HTTP. What the file exporter writes is conformant, and
// equals what profile.Parse reads from the payload.
func TestPushedProfilesArriveWhole(t *testing.T) {
	t.Parallel()
	c := startQuickstart(t)
	payloads := capturedPayloads(t)
	for name, payload := range payloads {
		c.requirePush(t, name, payload)
	}
	// 204 means that the exporter has written it, so there is nothing to wait for.
	byService := c.output(t)
	for name, payload := range payloads {
		t.Run(name, func(t *testing.T) {
			require.Len(t, byService[name], 1)
			pd := byService[name][0]
			requireIdentity(t, pd)
			require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
			requireSame(t, payload, pd)
		})
	}
	c.Terminate(t)
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
	want, err := profile.ParseData(payload)
	require.NoError(t, err)
	require.Equal(t, sumsOfPprof(t, payload), sumsOfOTLP(profilesIn(pd)))

	encoded, _, err := encode.Encode(pd)
	require.NoError(t, err)
	require.Len(t, encoded, 1)
	got, err := profile.ParseData(encoded[0].Bytes)
	require.NoError(t, err)
	require.NoError(t, profiletest.EqualPprof(want, got, profiletest.StrictZero()))
}

// TestWhatIsNotPprofIsRefused sends what people send by mistake. The answer has the reason, and the next push arrives.
func TestWhatIsNotPprofIsRefused(t *testing.T) {
	c := startQuickstart(t)
	good := capturedPayloads(t)["go-cpu-labels.pb.gz"]
	for _, bad := range []struct {
		name, file, body, reason string
		isKnown                  bool // to be of another format
	}{
		{name: "legacy gperftools", file: "cpp-gperftools-legacy.prof", reason: "gperftools", isKnown: true},
		{name: "text dump", file: "go-goroutine-debug1.txt", reason: "debug=1", isKnown: true},
		{name: "damaged execution trace", body: "go 1.26 trace\x00\x00\x00nonsense", reason: "go_trace"},
		{name: "HTML", body: "<!DOCTYPE html><html><body>404</body></html>", reason: "HTML"},
		{name: "truncated gzip", body: string(good[:len(good)/2]), reason: "pprof"},
		{name: "empty body", body: "", reason: "empty"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			body := []byte(bad.body)
			if bad.file != "" {
				var err error
				body, err = os.ReadFile(filepath.Join(repository, "testdata", "pprof", bad.file))
				require.NoError(t, err)
			}
			status, answer, err := c.push("bad "+bad.name, body)
			require.NoError(t, err)
			want := http.StatusBadRequest
			if bad.isKnown {
				want = http.StatusUnsupportedMediaType
			}
			require.Equal(t, want, status, answer)
			require.Contains(t, answer, bad.reason)

			c.requirePush(t, "after "+bad.name, good)
		})
	}
	arrived := 0
	for service := range c.output(t) {
		require.False(t, strings.HasPrefix(service, "bad "), "%s reached the output", service)
		if strings.HasPrefix(service, "after ") {
			arrived++
		}
	}
	require.Equal(t, 6, arrived)
	require.Contains(t, c.ownMetrics(t), "otelcol_receiver_pprof_rejected_payloads")
}
