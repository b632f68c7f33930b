// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const mcpConfig = `
extensions:
  basicauth:
    htpasswd: {inline: "assistant:secret"}
receivers:
  pprof:
    server: {endpoint: "${env:PPROF_ENDPOINT}"}
exporters:
  profile_store:
    server: {endpoint: "${env:PAGE_ENDPOINT}", auth: {authenticator: basicauth}}
    mcp: {}
service:
  extensions: [basicauth]
  pipelines:
    profiles: {receivers: [pprof], exporters: [profile_store]}
  telemetry: {metrics: {level: none}}
`

// shopPprof returns a profile of the shop, whose label says which version the samples are of.
func shopPprof(t *testing.T) []byte {
	t.Helper()
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		Period:     1e7, TimeNanos: time.Now().Add(-20 * time.Second).UnixNano(), DurationNanos: 10e9,
	}
	locations := map[string]*profile.Location{}
	for _, s := range []struct {
		value   int64
		version string
		stack   []string
	}{
		{2e9, "1", []string{"json.marshal", "shop.handle", "main.main"}},
		{1e9, "1", []string{"shop.price", "shop.handle", "main.main"}},
		{5e9, "2", []string{"json.marshal", "shop.handle", "main.main"}},
		{1e9, "2", []string{"json.marshal", "shop.audit", "main.main"}},
	} {
		sample := &profile.Sample{Value: []int64{s.value}, Label: map[string][]string{"version": {s.version}}}
		for _, name := range s.stack {
			if locations[name] == nil {
				function := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name, Filename: "shop.go"}
				p.Function = append(p.Function, function)
				locations[name] = &profile.Location{ID: function.ID,
					Line: []profile.Line{{Function: function, Line: int64(function.ID)}}}
				p.Location = append(p.Location, locations[name])
			}
			sample.Location = append(sample.Location, locations[name])
		}
		p.Sample = append(p.Sample, sample)
	}
	var zipped bytes.Buffer
	require.NoError(t, p.Write(&zipped))
	return zipped.Bytes()
}

// TestAssistant asks the collector over HTTP, and profiletool over standard input and output about a file and about
// that collector, by the npm package of the Model Context Protocol. All answers are the same.
func TestAssistant(t *testing.T) {
	t.Parallel()
	app := installNPM(t, "E2E_MCP", "mcp")
	pprof := shopPprof(t)
	file := filepath.Join(t.TempDir(), "shop")
	require.NoError(t, os.WriteFile(file, pprof, 0o600))
	tool := filepath.Join(t.TempDir(), "profiletool")
	requireRun(t, repository, nil, "go", "build", "-o", tool, "./cmd/profiletool")

	path, err := collectortest.SlimBinary()
	require.NoError(t, err)
	c := newCollector(t, []string{path, "--config", newFile(t, "mcp.yaml", []byte(mcpConfig))})
	c.start(t, "the collector with mcp")
	requirePost(t, "http://"+c.endpoint+"/v1/pprof?service.name=shop", "application/octet-stream", pprof)
	url := "http://" + c.graphs
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("assistant:secret"))

	moment := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	for name, args := range map[string][]string{
		"http":   {"http", url + "/mcp", basic},
		"file":   {"stdio", tool, "mcp", file},
		"remote": {"stdio", tool, "mcp", "--url", url, "--header", "Authorization=" + basic},
	} {
		t.Run(name, func(t *testing.T) {
			out := requireRun(t, app, nil, "node", append([]string{"ask.js"}, args...)...)
			out = regexp.MustCompile(`(?m)^\d+ profiles? with .*\n`).ReplaceAllString(out, "") // what profiletool logs
			profiletest.Golden(t, filepath.Join("testdata", "mcp", "answers.txt"), moment.ReplaceAllString(out, "TIME")+"\n")
		})
	}
	out, err := run(app, nil, "node", "ask.js", "http", url+"/mcp", "Basic d3Jvbmc=")
	require.Error(t, err, out)
	require.Contains(t, out, "401")
	out, err = run(app, nil, tool, "mcp", "--url", url)
	require.Error(t, err, out)
	require.Contains(t, out, "Unauthorized")
}
