// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// startFromLogs starts a collector whose connector splunk_profiling takes profiles out of the logs of the receiver
// otlp_profiles, which has a profiles pipeline too. It writes both to files.
func startFromLogs(t *testing.T) *collector {
	t.Helper()
	return launch(t, `yaml:
receivers: {otlp_profiles: {protocols: {http: {endpoint: "${env:OTLP_HTTP_ENDPOINT}"}}}}
connectors: {splunk_profiling: }
exporters:
  file: {path: "${env:PROFILES_OUT}/profiles.jsonl", create_directory: true}
  file/logs: {path: "${env:PROFILES_OUT}/logs/logs.jsonl", create_directory: true}
service:
  pipelines:
    logs/in:  {receivers: [otlp_profiles], exporters: [splunk_profiling]}
    profiles: {receivers: [otlp_profiles, splunk_profiling], exporters: [file]}
    logs:     {receivers: [splunk_profiling], exporters: [file/logs]}
  telemetry: {metrics: {level: none}}
`)
}

// startToLogs starts a collector whose connector profiles_to_logs makes log records of pushed profiles, for the
// Collector's exporter of logs.
func startToLogs(t *testing.T, backend, format string) *collector {
	t.Helper()
	return launch(t, fmt.Sprintf(`yaml:
receivers: {pprof: {server: {endpoint: "${env:PPROF_ENDPOINT}"}, timestamp_labels: []}}
connectors: {profiles_to_logs: {format: %s}}
exporters: {otlp_http: {endpoint: %q, timeout: 60s, sending_queue: {enabled: false}}}
service:
  pipelines:
    profiles: {receivers: [pprof], exporters: [profiles_to_logs]}
    logs:     {receivers: [profiles_to_logs], exporters: [otlp_http]}
  telemetry: {metrics: {level: none}}
`, format, "http://"+backend))
}

// TestConnectorTakesProfilesOutOfLogs sends every captured request of Splunk's agents, each with an ordinary record,
// through a logs pipeline: the profiles are those of the translator, and the record stays a log record.
func TestConnectorTakesProfilesOutOfLogs(t *testing.T) {
	c := startFromLogs(t)
	requests := capturedLogs(t)
	want := map[string]pprofile.Profiles{}
	for name, request := range requests {
		if pd := records.Translate(request.Logs(), records.Options{}).Profiles; pd.SampleCount() > 0 {
			want[name] = pd
		}
		sl := request.Logs().ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
		sl.LogRecords().AppendEmpty().Body().SetStr("beside " + name)
		requireLogs(t, c.otlpHTTP, marshalLogs(t, request))
	}
	c.Terminate(t)
	got := c.output(t)
	require.Len(t, got, len(want))
	for name, pd := range want {
		require.Len(t, got[name], 1, name)
		require.NoError(t, profiletest.Check(got[name][0]), name)
		require.NoError(t, profiletest.Equal(pd, got[name][0]), name)
	}
	content := profiletest.FileBytes(t, filepath.Join(c.outputDir, "logs", "logs.jsonl"))
	require.Equal(t, len(requests), bytes.Count(content, []byte("\n")))
	for line := range bytes.Lines(content) {
		ld, err := new(plog.JSONUnmarshaler).UnmarshalLogs(line)
		require.NoError(t, err)
		require.Equal(t, 1, ld.LogRecordCount())
		require.Contains(t, string(line), "beside ")
	}
}

// TestConnectorsCarryProfilesAsLogs pushes every captured pprof to collectors that make log records of it. The
// Collector's exporter sends these to another collector, which makes profiles of them again. The result equals the
// payload.
func TestConnectorsCarryProfilesAsLogs(t *testing.T) {
	t.Parallel()
	end := startFromLogs(t)
	payloads := capturedPayloads(t)
	formats := []string{"pprof", "otlp"}
	for _, format := range formats {
		agent := startToLogs(t, end.otlpHTTP, format)
		for name, payload := range payloads {
			agent.requirePush(t, format+" "+name, payload) // 204: the other collector's file exporter has written it
		}
		agent.Terminate(t)
	}
	end.Terminate(t)
	byService := end.output(t)
	for _, format := range formats {
		for name, payload := range payloads {
			got := byService[format+" "+name]
			require.Len(t, got, 1, "%s %s", format, name)
			requireIdentity(t, got[0])
			require.NoError(t, profiletest.Check(got[0], profiletest.AllowRepeatedSamples()), name)
			if format == "otlp" && name == hugePayload { // a profile that is larger than a record arrives in parts
				require.Equal(t, sumsOfPprof(t, payload), sumsOfOTLP(profilesIn(got[0])), name)
				continue
			}
			requireSame(t, payload, got[0])
		}
	}
}
