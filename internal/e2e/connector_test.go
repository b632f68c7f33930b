// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunklog"
)

// startFromLogs starts a collector whose connector splunk_profiling takes profiles out of the logs of the otlp receiver; it
// writes both to files.
func startFromLogs(t *testing.T) *collector {
	t.Helper()
	address, out := freeAddress(t), t.TempDir()
	return launch(t, address, out, fmt.Sprintf(`yaml:
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
connectors: {splunk_profiling: }
exporters:
  file: {path: %q}
  file/logs: {path: %q, create_directory: true}
service:
  pipelines:
    logs/in:  {receivers: [otlp], exporters: [splunk_profiling]}
    profiles: {receivers: [splunk_profiling], exporters: [file]}
    logs:     {receivers: [splunk_profiling], exporters: [file/logs]}
  telemetry: {metrics: {level: none}}
`, address, filepath.Join(out, "profiles.jsonl"), filepath.Join(out, "logs", "logs.jsonl")))
}

// startToLogs starts a collector whose connector profiles_to_logs hands pushed profiles to the stock exporter of logs.
func startToLogs(t *testing.T, backend, format string) *collector {
	t.Helper()
	address := freeAddress(t)
	return launch(t, address, "", fmt.Sprintf(`yaml:
receivers: {pprof: {server: {endpoint: %q}, timestamp_labels: []}}
connectors: {profiles_to_logs: {format: %s}}
exporters: {otlp_http: {endpoint: %q, timeout: 60s, sending_queue: {enabled: false}}}
service:
  pipelines:
    profiles: {receivers: [pprof], exporters: [profiles_to_logs]}
    logs:     {receivers: [profiles_to_logs], exporters: [otlp_http]}
  telemetry: {metrics: {level: none}}
`, address, format, "http://"+backend))
}

// TestConnectorTakesProfilesOutOfLogs sends every captured request of Splunk's agents and an ordinary record through a logs
// pipeline: the profiles are what the translator makes of them, and the record is left where it was.
func TestConnectorTakesProfilesOutOfLogs(t *testing.T) {
	c := startFromLogs(t)
	files, err := filepath.Glob(filepath.Join(repository, "testdata", "splunk", "*.otlp-logs.pb"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	want := map[string]pprofile.Profiles{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		request := plogotlp.NewExportRequest()
		require.NoError(t, request.UnmarshalProto(body))
		name := filepath.Base(file)
		request.Logs().ResourceLogs().At(0).Resource().Attributes().PutStr("service.name", name)
		if pd := splunklog.Translate(request.Logs(), splunklog.Options{}).Profiles; pd.SampleCount() > 0 {
			want[name] = pd
		}
		// An ordinary record in the same request.
		sl := request.Logs().ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
		sl.LogRecords().AppendEmpty().Body().SetStr("beside " + name)
		body, err = request.MarshalProto()
		require.NoError(t, err)
		require.Zero(t, c.postLogs(t, body).PartialSuccess().RejectedLogRecords())
	}
	c.Terminate(t)
	got := c.output(t)
	require.Len(t, got, len(want))
	for name, pd := range want {
		require.Len(t, got[name], 1, name)
		require.NoError(t, profiletest.Check(got[name][0]), name)
		require.NoError(t, profiletest.Equal(pd, got[name][0]), name)
	}
	content, err := os.ReadFile(filepath.Join(c.outputDir, "logs", "logs.jsonl"))
	require.NoError(t, err)
	require.Equal(t, len(files), bytes.Count(content, []byte("\n")))
	for line := range bytes.Lines(content) {
		ld, err := new(plog.JSONUnmarshaler).UnmarshalLogs(line)
		require.NoError(t, err)
		require.Equal(t, 1, ld.LogRecordCount())
		require.Contains(t, string(line), "beside ")
	}
}

// TestConnectorsCarryProfilesAsLogs pushes every captured pprof to collectors that make log records of it, which the
// stock exporter sends to another, that makes profiles of them again: in the formats pprof and otlp the payload is what it
// was, in text its sums are.
func TestConnectorsCarryProfilesAsLogs(t *testing.T) {
	t.Parallel()
	const huge = "go-compile-nethttp-heap-huge.pb.gz"
	end := startFromLogs(t)
	payloads := capturedPayloads(t)
	tooLarge := map[string][]string{
		// A record of text for each sample: these are more than a request may be.
		"text": {huge, "go-compile-nethttp-heap-large.pb.gz", "go-build-merged-cpu-large.pb.gz"},
	}
	formats := []string{"pprof", "otlp", "text"}
	for _, format := range formats {
		agent := startToLogs(t, end.endpoint, format)
		for name, payload := range payloads {
			if slices.Contains(tooLarge[format], name) {
				continue
			}
			// 204 means that the other collector's file exporter has written it.
			status, answer, err := agent.push(format+" "+name, payload)
			require.NoError(t, err, name)
			require.Equal(t, http.StatusNoContent, status, "%s: %s", name, answer)
		}
		agent.Terminate(t)
	}
	end.Terminate(t)
	byService := end.output(t)
	for _, format := range formats {
		for name, payload := range payloads {
			if slices.Contains(tooLarge[format], name) {
				continue
			}
			got := byService[format+" "+name]
			require.Len(t, got, 1, "%s %s", format, name)
			requireIdentity(t, got[0])
			require.NoError(t, profiletest.Check(got[0], profiletest.AllowRepeatedSamples()), name)
			if format == "text" || format == "otlp" && name == huge {
				// In text a sample's labels become attributes of a profile, so that one becomes several. In otlp the parts of what
				// is larger than a record stay apart.
				want, err := profile.ParseData(payload)
				require.NoError(t, err)
				require.Equal(t, sums(totalsOfPprof(want)), sums(totalsOfOTLP(got[0])), name)
				continue
			}
			requireSame(t, payload, got[0])
		}
	}
}

// sums adds up the totals of one sample type.
func sums(totals map[total]int) map[[2]string]int64 {
	found := map[[2]string]int64{}
	for sum, times := range totals {
		found[[2]string{sum.typeName, sum.unit}] += sum.value * int64(times)
	}
	return found
}
