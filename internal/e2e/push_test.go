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

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofencode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// capturedPayloads gives the pprof files of testdata, by name.
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

// TestPushedProfilesArriveWhole pushes every captured payload by HTTP, reads what the file exporter wrote, and
// expects conformant profiles that say what profile.Parse says of the payload.
func TestPushedProfilesArriveWhole(t *testing.T) {
	t.Parallel()
	c := startQuickstart(t)
	payloads := capturedPayloads(t)
	for name, payload := range payloads {
		status, answer, err := c.push(name, payload)
		require.NoError(t, err, name)
		require.Equal(t, http.StatusNoContent, status, "%s: %s", name, answer)
	}
	// An answer of 204 means that the exporter has written it: nothing is waited for.
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

// requireIdentity expects the resource that the query asked for, and a scope that names its maker.
func requireIdentity(t *testing.T, pd pprofile.Profiles) {
	t.Helper()
	resource := pd.ResourceProfiles().At(0)
	region, found := resource.Resource().Attributes().Get("region")
	require.True(t, found)
	require.Equal(t, "eu", region.Str())
	require.Equal(t, 1, resource.ScopeProfiles().Len())
	require.NotEmpty(t, resource.ScopeProfiles().At(0).Scope().Name())
}

// requireSame expects pd to be the payload: by the totals that OTLP's own fields give, and, turned back into pprof,
// sample by sample.
func requireSame(t *testing.T, payload []byte, pd pprofile.Profiles) {
	t.Helper()
	want, err := profile.ParseData(payload)
	require.NoError(t, err)
	require.Equal(t, sums(totalsOfPprof(want)), sums(totalsOfOTLP(pd)))

	encoded, _, err := pprofencode.Encode(pd)
	require.NoError(t, err)
	require.Len(t, encoded, 1)
	got, err := profile.ParseData(encoded[0].Bytes)
	require.NoError(t, err)
	require.NoError(t, profiletest.EqualPprof(want, got, profiletest.StrictZero()))
}

// total is what a sample type sums up to.
type total struct {
	typeName, unit string
	value          int64
}

func totalsOfPprof(p *profile.Profile) map[total]int {
	totals := map[total]int{}
	for i, sampleType := range p.SampleType {
		sum := total{typeName: sampleType.Type, unit: sampleType.Unit}
		for _, sample := range p.Sample {
			sum.value += sample.Value[i]
		}
		totals[sum]++
	}
	return totals
}

func totalsOfOTLP(pd pprofile.Profiles) map[total]int {
	totals := map[total]int{}
	text := pd.Dictionary().StringTable()
	for _, p := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		sum := total{
			typeName: text.At(int(p.SampleType().TypeStrindex())),
			unit:     text.At(int(p.SampleType().UnitStrindex())),
		}
		for _, sample := range p.Samples().All() {
			for _, value := range sample.Values().All() {
				sum.value += value
			}
			if sample.Values().Len() == 0 {
				sum.value += int64(sample.TimestampsUnixNano().Len()) // each counts one
			}
		}
		totals[sum]++
	}
	return totals
}

// TestWhatIsNotPprofIsRefused sends what people send by mistake. Each gets the reason, and the next push arrives.
func TestWhatIsNotPprofIsRefused(t *testing.T) {
	c := startQuickstart(t)
	good := capturedPayloads(t)["go-cpu-labels.pb.gz"]
	for _, bad := range []struct{ name, file, body, reason string }{
		{name: "legacy gperftools", file: "cpp-gperftools-legacy.prof", reason: "gperftools"},
		{name: "text dump", file: "go-goroutine-debug1.txt", reason: "debug=1"},
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
			require.Equal(t, http.StatusBadRequest, status, answer)
			require.Contains(t, answer, bad.reason)

			status, answer, err = c.push("after "+bad.name, good)
			require.NoError(t, err)
			require.Equal(t, http.StatusNoContent, status, answer)
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
