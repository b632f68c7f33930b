// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// capturedLogs returns the captured requests of Splunk's agents by the names of their files. They are also the names of
// their services, so that the output can be told apart.
func capturedLogs(t *testing.T) map[string]plogotlp.ExportRequest {
	t.Helper()
	files := profiletest.Glob(t, filepath.Join(repository, "testdata", "splunk", "*.otlp-logs.pb"))
	requests := map[string]plogotlp.ExportRequest{}
	for _, file := range files {
		body := profiletest.FileBytes(t, file)
		request := plogotlp.NewExportRequest()
		require.NoError(t, request.UnmarshalProto(body))
		name := filepath.Base(file)
		request.Logs().ResourceLogs().At(0).Resource().Attributes().PutStr("service.name", name)
		requests[name] = request
	}
	return requests
}

func marshalLogs(t *testing.T, request plogotlp.ExportRequest) []byte {
	t.Helper()
	body, err := request.MarshalProto()
	require.NoError(t, err)
	return body
}

// TestSplunkRecordsBecomeProfiles sends every captured request and ordinary logs to config/splunk.yaml. The files that
// it writes have the profiles of the translator, and the ordinary logs unchanged.
func TestSplunkRecordsBecomeProfiles(t *testing.T) {
	c := launch(t, splunkConfig)
	requests := capturedLogs(t)
	for _, request := range requests {
		requireLogs(t, c.splunkHTTP, marshalLogs(t, request))
	}

	ordinary := plog.NewLogs()
	ordinary.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().
		SetStr("an ordinary line")
	requireLogs(t, c.splunkHTTP, marshalLogs(t, plogotlp.NewExportRequestFromLogs(ordinary)))
	requirePost(t, "http://"+c.hec+"/services/collector/event", "application/json", []byte(
		`{"event": "\n\nat total(cart.js:12:3)", "sourcetype": "otel.profiling", "time": 1700000000, "fields": {"service.name": "hec"}}`+
			`{"event": "an ordinary event"}`))

	byService := c.output(t)
	require.Len(t, byService["hec"], 1)
	require.Contains(t, profiletest.Render(byService["hec"][0]), "total cart.js:12:3")
	for name, request := range requests {
		want := records.Translate(request.Logs(), records.Options{}).Profiles
		if want.SampleCount() == 0 {
			require.Empty(t, byService[name], name)
			continue
		}
		require.Len(t, byService[name], 1, name)
		require.NoError(t, profiletest.Check(byService[name][0]), name)
		require.NoError(t, profiletest.Equal(want, byService[name][0]), name)
	}
	logs := profiletest.FileBytes(t, filepath.Join(c.outputDir, "logs", "logs.jsonl"))
	require.Contains(t, string(logs), "an ordinary line")
	require.Contains(t, string(logs), "an ordinary event")
	require.NotContains(t, string(logs), "otel.profiling")
	require.Contains(t, c.ownMetrics(t), "otelcol_receiver_splunk_profiling_records")
	c.Terminate(t)
}
