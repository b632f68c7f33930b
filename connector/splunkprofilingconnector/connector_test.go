// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func settings(t *testing.T) (connector.Settings, *componenttest.Telemetry) {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	return connector.Settings{ID: component.MustNewID("splunk_profiling"),
		TelemetrySettings: telemetry.NewTelemetrySettings()}, telemetry
}

func toProfilesOf(t *testing.T, set connector.Settings, next *consumertest.ProfilesSink) connector.Logs {
	t.Helper()
	c, err := NewFactory().(xconnector.Factory).CreateLogsToProfiles(t.Context(), set, createDefaultConfig(), next)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), nil))
	t.Cleanup(func() { require.NoError(t, c.Shutdown(context.Background())) })
	return c
}

func toLogsOf(t *testing.T, next *consumertest.LogsSink) connector.Logs {
	t.Helper()
	set, _ := settings(t)
	c, err := NewFactory().CreateLogsToLogs(t.Context(), set, createDefaultConfig(), next)
	require.NoError(t, err)
	return c
}

// mixed returns a request with a captured profile, an ordinary record, and a record that claims to be a profile.
func mixed(t *testing.T) plog.Logs {
	t.Helper()
	body := profiletest.FileBytes(t, filepath.Join("..", "..", "testdata", "splunk", "v4.11.0-001-cpu-snapshot.otlp-logs.pb"))
	request := plogotlp.NewExportRequest()
	require.NoError(t, request.UnmarshalProto(body))
	ld := request.Logs()
	sl := ld.ResourceLogs().At(0).ScopeLogs().AppendEmpty()
	sl.Scope().SetName("shop.log")
	sl.LogRecords().AppendEmpty().Body().SetStr("hello")
	bad := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().AppendEmpty()
	bad.Body().SetStr("garbage")
	ld.MarkReadOnly() // it is shared with other pipelines
	return ld
}

func TestConfig(t *testing.T) {
	load := func(section map[string]any) (*Config, error) {
		return collectortest.LoadConfig(createDefaultConfig().(*Config), section)
	}
	_, err := load(nil)
	assert.NoError(t, err)
	cfg, err := load(map[string]any{"limits": map[string]any{"max_stack_depth": 7}})
	require.NoError(t, err)
	limits := scan.DefaultLimits()
	limits.MaxStackDepth = 7
	assert.Equal(t, records.Options{Limits: limits}, cfg.Translation.Options())
	_, err = load(map[string]any{"limits": map[string]any{"max_stack_depth": 0, "max_profile_bytes": -1}})
	assert.ErrorContains(t, err, "`max_stack_depth` must be positive")
	assert.ErrorContains(t, err, "`max_profile_bytes` must be positive")
	_, err = load(map[string]any{"limit": 1})
	assert.ErrorContains(t, err, "limit")
}

func TestLogsToProfiles(t *testing.T) {
	set, telemetry := settings(t)
	sink := &consumertest.ProfilesSink{}
	c := toProfilesOf(t, set, sink)
	assert.False(t, c.Capabilities().MutatesData)
	ld := mixed(t)
	require.NoError(t, c.ConsumeLogs(t.Context(), ld))
	require.Len(t, sink.AllProfiles(), 1)
	want := records.Translate(ld, records.Options{}).Profiles
	require.Positive(t, want.SampleCount())
	assert.NoError(t, profiletest.Equal(want, sink.AllProfiles()[0]))
	assert.NoError(t, profiletest.Check(sink.AllProfiles()[0]))

	for name, value := range map[string]int64{"records": 2, "profiles": 1, "rejected_records": 1} {
		assert.Equal(t, value, collectortest.Sum(t, telemetry, "otelcol_connector_splunk_profiling_"+name), name)
	}
}

// What the pipeline answers is what the one before it learns.
func TestLogsToProfilesRefused(t *testing.T) {
	set, _ := settings(t)
	for _, refusal := range []error{errors.New("later"), consumererror.NewPermanent(errors.New("never"))} {
		c, err := createLogsToProfiles(t.Context(), set, createDefaultConfig(), consumertest.NewErr(refusal))
		require.NoError(t, err)
		err = c.ConsumeLogs(t.Context(), mixed(t))
		assert.ErrorIs(t, err, refusal)
		assert.Equal(t, consumererror.IsPermanent(refusal), consumererror.IsPermanent(err))
	}
}

func TestLogsToLogs(t *testing.T) {
	sink := &consumertest.LogsSink{}
	c := toLogsOf(t, sink)
	require.NoError(t, c.ConsumeLogs(t.Context(), mixed(t)))
	require.Len(t, sink.AllLogs(), 1)
	rest := sink.AllLogs()[0]
	require.Equal(t, 1, rest.LogRecordCount())
	assert.Equal(t, "hello", rest.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().Str())
	assert.Equal(t, mixed(t).ResourceLogs().At(0).Resource().Attributes().AsRaw(),
		rest.ResourceLogs().At(0).Resource().Attributes().AsRaw())

	sink.Reset()
	require.NoError(t, c.ConsumeLogs(t.Context(), rest))
	require.Len(t, sink.AllLogs(), 1, "ordinary logs pass as they are")
	assert.Equal(t, rest, sink.AllLogs()[0])

	sink.Reset()
	profile := mixed(t)
	only := plog.NewLogs()
	profile.ResourceLogs().At(0).CopyTo(only.ResourceLogs().AppendEmpty())
	only.ResourceLogs().At(0).ScopeLogs().RemoveIf(func(sl plog.ScopeLogs) bool { return sl.Scope().Name() == "shop.log" })
	require.NoError(t, c.ConsumeLogs(t.Context(), only))
	assert.Empty(t, sink.AllLogs())
}
