// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hostdetectionprocessor

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/hostdetectionprocessor/internal/metadata"
)

func TestResourcesGetWhatWasFound(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		variables map[string]string
		detectors []string
		override  bool
		want      map[string]any
		schema    string
	}{
		"both": {
			map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=a%20b, team = shop ,"},
			[]string{"env", "system"}, false,
			map[string]any{"host.name": "theirs", "service.name": "s", "os.type": runtime.GOOS,
				"deployment.environment.name": "a b", "team": "shop"}, schemaURL,
		},
		"override": {nil, []string{"system"}, true,
			map[string]any{"host.name": host, "service.name": "s", "os.type": runtime.GOOS}, schemaURL},
		"a version with +": {map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "service.version=1.2.0+build5,a=x%2By"},
			[]string{"env"}, false, map[string]any{"host.name": "theirs", "service.name": "s", "service.version": "1.2.0+build5",
				"a": "x+y"}, ""},
		"the first one stays": {map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "os.type=mine"}, []string{"env", "system"},
			false, map[string]any{"host.name": "theirs", "service.name": "s", "os.type": "mine"}, schemaURL},
		"the old variable": {map[string]string{"OTEL_RESOURCE": "a=b"}, []string{"env"}, false,
			map[string]any{"host.name": "theirs", "service.name": "s", "a": "b"}, ""},
		"nothing":      {nil, []string{"env"}, true, map[string]any{"host.name": "theirs", "service.name": "s"}, ""},
		"no detectors": {nil, nil, true, map[string]any{"host.name": "theirs", "service.name": "s"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(envVariable, tc.variables[envVariable])
			t.Setenv(oldEnvVariable, tc.variables[oldEnvVariable])
			sink := new(consumertest.ProfilesSink)
			p, err := NewFactory().(xprocessor.Factory).CreateProfiles(t.Context(), processortest.NewNopSettings(metadata.Type),
				&Config{Detectors: tc.detectors, Override: tc.override, System: SystemConfig{HostnameSources: []string{"os"}}},
				sink)
			require.NoError(t, err)
			require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
			pd := pprofile.NewProfiles()
			resource := pd.ResourceProfiles().AppendEmpty()
			resource.Resource().Attributes().PutStr("service.name", "s")
			resource.Resource().Attributes().PutStr("host.name", "theirs")
			pd.ResourceProfiles().AppendEmpty().SetSchemaUrl("theirs")
			require.NoError(t, p.ConsumeProfiles(t.Context(), pd))
			require.NoError(t, p.Shutdown(t.Context()))

			got := sink.AllProfiles()[0].ResourceProfiles()
			assert.Equal(t, tc.want, got.At(0).Resource().Attributes().AsRaw())
			assert.Equal(t, tc.schema, got.At(0).SchemaUrl())
			assert.Equal(t, "theirs", got.At(1).SchemaUrl())
		})
	}
}

// The marshaler of an exporter can leave references into the string table in a message.
func TestReferencesAreAttributesOfTheSender(t *testing.T) {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("")
	pd.ResourceProfiles().AppendEmpty().Resource().Attributes().PutStr("host.name", "theirs")
	_, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd) // moves the texts into the dictionary
	require.NoError(t, err)

	p := &hostDetection{cfg: &Config{Detectors: []string{"system"}}}
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	pd, err = p.profiles(t.Context(), pd)
	require.NoError(t, err)
	got := pd.ResourceProfiles().At(0).Resource().Attributes()
	assert.Equal(t, map[string]any{"host.name": "theirs", "os.type": runtime.GOOS}, got.AsRaw())
	assert.Equal(t, 2, got.Len())
}

func TestABadVariableEndsTheStart(t *testing.T) {
	for text, want := range map[string]string{
		"a":      "found \"a\"",
		"a=b,,c": "found \"\"",
		"=b":     "found \"=b\"",
		"a=%zz":  "invalid URL escape \"%zz\"",
		",":      "found \"\"",
	} {
		t.Setenv(envVariable, text)
		p := &hostDetection{cfg: &Config{Detectors: []string{"env"}}}
		err := p.Start(t.Context(), componenttest.NewNopHost())
		assert.ErrorContains(t, err, "detector \"env\": `OTEL_RESOURCE_ATTRIBUTES` must be key=value pairs", text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestValidateNamesContribsProcessor(t *testing.T) {
	require.NoError(t, createDefaultConfig().(*Config).Validate())
	for want, c := range map[string]Config{
		"`detectors[1]` must be env or system, found \"ec2\": contrib's processor": {Detectors: []string{"env",
			"ec2"}},
		"`system.hostname_sources` must be [os], found []: contrib's processor": {
			Detectors: []string{"system"}},
		"`system.hostname_sources` must be [os], found [\"dns\" \"os\"]: contrib's processor": {Detectors: []string{"system"},
			System: SystemConfig{HostnameSources: []string{"dns", "os"}}},
	} {
		assert.ErrorContains(t, c.Validate(), want)
	}
}

func TestEverySignal(t *testing.T) {
	t.Setenv(envVariable, "team=shop")
	set, cfg := processortest.NewNopSettings(metadata.Type), createDefaultConfig()
	traces, metrics, logs := new(consumertest.TracesSink), new(consumertest.MetricsSink), new(consumertest.LogsSink)
	ofTraces, err := NewFactory().CreateTraces(t.Context(), set, cfg, traces)
	require.NoError(t, err)
	ofMetrics, err := NewFactory().CreateMetrics(t.Context(), set, cfg, metrics)
	require.NoError(t, err)
	ofLogs, err := NewFactory().CreateLogs(t.Context(), set, cfg, logs)
	require.NoError(t, err)
	for _, p := range []component.Component{ofTraces, ofMetrics, ofLogs} {
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	}
	td, md, ld := ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()
	td.ResourceSpans().AppendEmpty()
	md.ResourceMetrics().AppendEmpty()
	ld.ResourceLogs().AppendEmpty()
	require.NoError(t, ofTraces.ConsumeTraces(t.Context(), td))
	require.NoError(t, ofMetrics.ConsumeMetrics(t.Context(), md))
	require.NoError(t, ofLogs.ConsumeLogs(t.Context(), ld))
	for _, resource := range []pcommon.Resource{
		traces.AllTraces()[0].ResourceSpans().At(0).Resource(),
		metrics.AllMetrics()[0].ResourceMetrics().At(0).Resource(),
		logs.AllLogs()[0].ResourceLogs().At(0).Resource(),
	} {
		assert.Equal(t, map[string]any{"team": "shop"}, resource.Attributes().AsRaw())
	}
}

func TestReadmeDefaults(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "README.md", "| key | type | default | bound | meaning |")
	c := createDefaultConfig().(*Config)
	for key, value := range map[string]any{
		"detectors": c.Detectors, "override": c.Override, "system.hostname_sources": c.System.HostnameSources,
	} {
		require.Contains(t, rows, key)
		assert.Equal(t, fmt.Sprint(value), strings.Trim(rows[key][2], "`"), key)
	}
	assert.Len(t, rows, 3)
}
