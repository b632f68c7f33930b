// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestoreexporter

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestoreexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// fixture is an exporter that runs.
type fixture struct {
	*storeExporter
	xexporter.Profiles
	t         testing.TB
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
	stop      func()
}

// startExporter starts an exporter on a free port with a configuration as in YAML.
func startExporter(t testing.TB, config map[string]any) *fixture {
	t.Helper()
	f := newFixture(t, config)
	require.NoError(t, f.Start(t.Context(), componenttest.NewNopHost()))
	stopped := false
	f.stop = func() {
		if !stopped {
			stopped = true
			require.NoError(t, f.Shutdown(context.Background()))
		}
	}
	t.Cleanup(f.stop)
	return f
}

func newFixture(t testing.TB, config map[string]any) *fixture {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Server.HTTP.NetAddr.Endpoint = "localhost:0"
	cfg, err := collectortest.LoadConfig(cfg, config)
	require.NoError(t, err)
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	core, logs := observer.New(zapcore.InfoLevel)
	set := exporter.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: telemetry.NewTelemetrySettings()}
	set.Logger = zap.New(core)
	e, err := newStoreExporter(cfg, set)
	require.NoError(t, err)
	wrapped, err := e.wrapped(t.Context())
	require.NoError(t, err)
	return &fixture{storeExporter: e, Profiles: wrapped, t: t, telemetry: telemetry, logs: logs}
}

// get sends a request to the server. header has names, each followed by its value.
func (f *fixture) get(path string, header ...string) (answer collectortest.Answer, body string) {
	f.t.Helper()
	answer = collectortest.Ask(f.t, http.MethodGet, "http://"+f.server.Addr().String()+path, nil, header...)
	return answer, answer.Body
}

// getJSON requires the status 200.
func (f *fixture) getJSON(path string, into any) {
	f.t.Helper()
	response, body := f.get(path)
	require.Equal(f.t, http.StatusOK, response.StatusCode, body)
	require.NoError(f.t, json.Unmarshal([]byte(body), into), body)
}

func (f *fixture) send(messages ...pprofile.Profiles) {
	f.t.Helper()
	for _, pd := range messages {
		require.NoError(f.t, f.ConsumeProfiles(f.t.Context(), pd))
	}
}

// captured returns a captured pprof, and the same as OTLP of the service shop, with its own time or the present one.
func captured(t testing.TB, name string, now bool) (payload []byte, pd pprofile.Profiles) {
	t.Helper()
	payload = profiletest.FileBytes(t, "../../testdata/pprof/"+name+".pb.gz")
	pd, _, err := decode.Decode(payload, decode.Options{})
	require.NoError(t, err)
	rp := pd.ResourceProfiles().At(0)
	rp.Resource().Attributes().PutStr("service.name", "shop")
	for _, sp := range rp.ScopeProfiles().All() {
		for _, p := range sp.Profiles().All() {
			if now {
				p.SetTime(unixNow() - pcommon.Timestamp(p.DurationNano()))
			}
		}
	}
	return payload, pd
}

// small returns a CPU profile of ten seconds that has just ended.
func small(service string, samples ...profiletest.Sample) pprofile.Profiles {
	if samples == nil {
		samples = []profiletest.Sample{profiletest.Value(3, "leaf", "main")}
	}
	return profiletest.New().Resource("service.name", service, "service.instance.id", "one").
		Scope("s", "1", "pprof.scope.profile_name", "cpu").Profile("cpu", "nanoseconds").
		Period(1, "cpu", "nanoseconds").Time(uint64(time.Now().Add(-10*time.Second).UnixNano()), 10e9).Sample(samples...).
		Build()
}

func unixNow() pcommon.Timestamp { return pcommon.NewTimestampFromTime(time.Now()) }

func escape(s string) string { return strings.ReplaceAll(url.PathEscape(s), "+", "%2B") }
