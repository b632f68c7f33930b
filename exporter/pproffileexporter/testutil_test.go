// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproffileexporter

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pproffileexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// fixture is an exporter that runs.
type fixture struct {
	*fileExporter
	t         testing.TB
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
	stop      func()
}

// startExporter starts an exporter with more keys as in YAML. Unless they turn it on, it has no queue: files are
// written when send returns.
func startExporter(t testing.TB, folder string, more map[string]any) *fixture {
	t.Helper()
	section := map[string]any{"directory": folder, "sending_queue": map[string]any{"enabled": false}}
	maps.Copy(section, more)
	cfg, err := collectortest.LoadConfig(createDefaultConfig().(*Config), section)
	require.NoError(t, err)
	f := &fixture{t: t, telemetry: componenttest.NewTelemetry()}
	set := exporter.Settings{ID: component.NewID(metadata.Type), TelemetrySettings: f.telemetry.NewTelemetrySettings()}
	core, logs := observer.New(zapcore.InfoLevel)
	set.Logger, f.logs = zap.New(core), logs
	e, err := createProfiles(t.Context(), set, cfg)
	require.NoError(t, err)
	f.fileExporter = e.(*fileExporter)
	require.NoError(t, f.Start(t.Context(), componenttest.NewNopHost()))
	stopped := false
	f.stop = func() {
		if !stopped {
			stopped = true
			require.NoError(t, f.Shutdown(context.Background()))
		}
	}
	t.Cleanup(func() {
		f.stop()
		require.NoError(t, f.telemetry.Shutdown(context.Background()))
	})
	return f
}

// send writes messages. It does not wait for the exporter to retry for long: what is not written soon is an error.
func (f *fixture) send(messages ...pprofile.Profiles) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
	defer cancel()
	for _, pd := range messages {
		require.NoError(f.t, f.ConsumeProfiles(ctx, pd))
	}
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
