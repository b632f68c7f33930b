// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunklog"
)

// startSplunk starts config/splunk.yaml. The collector's endpoint is that of OTLP/HTTP.
func startSplunk(t *testing.T) (c *collector, hec string) {
	t.Helper()
	endpoint, outputDir := freeAddress(t), filepath.Join(t.TempDir(), "out")
	hec = freeAddress(t)
	c = launchWith(t, endpoint, outputDir, "config/splunk.yaml", nil, "SPLUNK_HTTP_ENDPOINT="+endpoint,
		"SPLUNK_GRPC_ENDPOINT="+freeAddress(t), "SPLUNK_HEC_ENDPOINT="+hec, "PROFILES_OUT="+outputDir)
	return c, hec
}

func (c *collector) postLogs(t *testing.T, body []byte) plogotlp.ExportResponse {
	t.Helper()
	response, err := client.Post("http://"+c.endpoint+"/v1/logs", "application/x-protobuf", bytes.NewReader(body))
	require.NoError(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", answer)
	taken := plogotlp.NewExportResponse()
	require.NoError(t, taken.UnmarshalProto(answer))
	return taken
}

// TestSplunkRecordsBecomeProfiles sends every captured request and ordinary logs to the built binary, and expects in
// the files that it writes what the translator makes of them, and the logs as they were.
func TestSplunkRecordsBecomeProfiles(t *testing.T) {
	c, hec := startSplunk(t)
	files, err := filepath.Glob(filepath.Join(repository, "testdata", "splunk", "*.otlp-logs.pb"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	sent := map[string][]byte{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		request := plogotlp.NewExportRequest()
		require.NoError(t, request.UnmarshalProto(body))
		// The file's name makes the output's lines distinguishable.
		request.Logs().ResourceLogs().At(0).Resource().Attributes().PutStr("service.name", filepath.Base(file))
		body, err = request.MarshalProto()
		require.NoError(t, err)
		sent[filepath.Base(file)] = body
		require.Zero(t, c.postLogs(t, body).PartialSuccess().RejectedLogRecords())
	}

	ordinary := plog.NewLogs()
	ordinary.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("an ordinary line")
	body, err := plogotlp.NewExportRequestFromLogs(ordinary).MarshalProto()
	require.NoError(t, err)
	require.Zero(t, c.postLogs(t, body).PartialSuccess().RejectedLogRecords())
	response, err := client.Post("http://"+hec+"/services/collector/event", "application/json", strings.NewReader(
		`{"event": "\n\nat total(cart.js:12:3)", "sourcetype": "otel.profiling", "time": 1700000000, "fields": {"service.name": "hec"}}`+
			`{"event": "an ordinary event"}`))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)

	byService := c.output(t)
	require.Len(t, byService["hec"], 1)
	require.Contains(t, profiletest.Render(byService["hec"][0]), "total cart.js:12:3")
	for name, body := range sent {
		request := plogotlp.NewExportRequest()
		require.NoError(t, request.UnmarshalProto(body))
		want := splunklog.Translate(request.Logs(), splunklog.Options{}).Profiles
		if want.SampleCount() == 0 {
			require.Empty(t, byService[name], name)
			continue
		}
		require.Len(t, byService[name], 1, name)
		require.NoError(t, profiletest.Check(byService[name][0]), name)
		require.NoError(t, profiletest.Equal(want, byService[name][0]), name)
	}
	logs, err := os.ReadFile(filepath.Join(c.outputDir, "logs", "logs.jsonl"))
	require.NoError(t, err)
	require.Contains(t, string(logs), "an ordinary line")
	require.Contains(t, string(logs), "an ordinary event")
	require.NotContains(t, string(logs), "otel.profiling")
	require.Contains(t, c.ownMetrics(t), "otelcol_receiver_splunk_profiling_records")
	c.Terminate(t)
}
