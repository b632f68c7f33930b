// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const processResourceConfig = `yaml:
receivers: {otlp_profiles: {protocols: {http: {endpoint: "${env:OTLP_HTTP_ENDPOINT}"}}}}
processors:
  process_resource: {proc: {read_environment: true}}
  dictionary_dedup: {timeout: 0s}
exporters: {file: {path: "${env:PROFILES_OUT}/profiles.jsonl", create_directory: true}}
service:
  pipelines:
    profiles: {receivers: [otlp_profiles], processors: [process_resource, dictionary_dedup], exporters: [file]}
  telemetry: {metrics: {level: none}}
`

// passThrough sends samples in one message, as the eBPF profiler does, ends the collector and returns what it wrote.
func passThrough(t *testing.T, c *collector, samples ...profiletest.Sample) []pprofile.Profiles {
	t.Helper()
	body, err := pprofileotlp.NewExportRequestFromProfiles(profiletest.New().Resource("container.id", "").
		Scope("go.opentelemetry.io/ebpf-profiler", "v0.0.202606").
		Profile("samples", "count").Time(1_000, 5_000_000).Period(50_000_000, "cpu", "nanoseconds").
		Sample(samples...).Build()).MarshalProto()
	require.NoError(t, err)
	requirePost(t, "http://"+c.otlpHTTP+"/v1development/profiles", protobuf, body)
	c.Terminate(t)
	messages := readProfiles(t, c.outputDir)
	require.Len(t, messages, 1)
	require.NoError(t, profiletest.Check(messages[0]))
	return messages
}

// TestProcessResource sends samples of two processes of this machine, as the eBPF profiler does. Each process gets a
// resource, and a name: one from its environment, the other from its executable.
func TestProcessResource(t *testing.T) {
	c := launch(t, processResourceConfig)

	var samples []profiletest.Sample
	for i, environment := range []string{"OTEL_SERVICE_NAME=shop", "NOTHING=here"} {
		command := exec.Command("sleep", "60")
		command.Env = append(os.Environ(), environment)
		require.NoError(t, command.Start())
		t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
		samples = append(samples, profiletest.Observed([]uint64{1_000 + uint64(i)}, "nanosleep", "main").With(
			profiletest.Attr("process.executable.name", "sleep"),
			profiletest.Attr("process.pid", int64(command.Process.Pid)),
			profiletest.Attr("thread.id", int64(command.Process.Pid)),
		))
	}
	messages := passThrough(t, c, samples...)
	for p := range profilesIn(messages...) {
		require.Equal(t, "sleep", p.resource.AsRaw()["process.executable.name"])
	}
	require.Equal(t, map[string]int{"shop": 1, "sleep": 1}, samplesByService(profilesIn(messages...)))
}

// TestProcessContext runs a program that publishes its context. Its samples get the name and version in there, without
// its environment.
func TestProcessContext(t *testing.T) {
	t.Parallel()
	app := installNPM(t, "E2E_DATADOG", "process-context")
	c := launch(t, strings.Replace(processResourceConfig, "read_environment: true", "read_environment: false", 1))
	command := exec.Command("node", "app.js")
	command.Dir = app
	command.Env = append(os.Environ(), "DD_TRACE_OTEL_CTX_ENABLED=true", "DD_SERVICE=shop", "DD_ENV=test",
		"DD_VERSION=1.2",
		"DD_TRACE_STARTUP_LOGS=false", "DD_INSTRUMENTATION_TELEMETRY_ENABLED=false", "DD_REMOTE_CONFIGURATION_ENABLED=false")
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
	_, err = output.Read(make([]byte, 1))
	require.NoError(t, err)

	for p := range profilesIn(passThrough(t, c, profiletest.Observed([]uint64{1_000}, "leaf", "main").With(
		profiletest.Attr("process.executable.name", "node"),
		profiletest.Attr("process.pid", int64(command.Process.Pid)),
	))...) {
		attributes := p.resource.AsRaw()
		require.Equal(t, "shop", attributes["service.name"])
		require.Equal(t, "1.2", attributes["service.version"])
		require.Equal(t, "test", attributes["deployment.environment.name"])
	}
}
