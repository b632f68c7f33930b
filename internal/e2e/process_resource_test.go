// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestProcessResource sends what the eBPF profiler says of two processes of this machine to a collector: each gets a
// resource and a name, one by what it says of itself in its environment, one by its executable.
func TestProcessResource(t *testing.T) {
	address, out := freeAddress(t), t.TempDir()
	c := launch(t, address, out, fmt.Sprintf(`yaml:
receivers: {otlp_profiles: {protocols: {http: {endpoint: %q}}}}
processors:
  process_resource: {proc: {read_environment: true}}
  dictionary_dedup: {timeout: 0s}
exporters: {file: {path: %q}}
service:
  pipelines:
    profiles: {receivers: [otlp_profiles], processors: [process_resource, dictionary_dedup], exporters: [file]}
  telemetry: {metrics: {level: none}}
`, address, filepath.Join(out, "profiles.jsonl")))

	b := profiletest.New().Resource("container.id", "").Scope("go.opentelemetry.io/ebpf-profiler", "v0.0.202606").
		Profile("samples", "count").Time(1_000, 5_000_000).Period(50_000_000, "cpu", "nanoseconds")
	for i, environment := range []string{"OTEL_SERVICE_NAME=shop", "NOTHING=here"} {
		command := exec.Command("sleep", "60")
		command.Env = append(os.Environ(), environment)
		require.NoError(t, command.Start())
		t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
		b.Sample(profiletest.Observed([]uint64{1_000 + uint64(i)}, "nanosleep", "main").With(
			profiletest.Attr("process.executable.name", "sleep"),
			profiletest.Attr("process.pid", int64(command.Process.Pid)),
			profiletest.Attr("thread.id", int64(command.Process.Pid)),
		))
	}
	body, err := pprofileotlp.NewExportRequestFromProfiles(b.Build()).MarshalProto()
	require.NoError(t, err)
	answer, err := http.Post("http://"+address+"/v1development/profiles", "application/x-protobuf", bytes.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	c.Terminate(t)

	messages := readProfiles(t, out)
	require.Len(t, messages, 1)
	require.NoError(t, profiletest.Check(messages[0]))
	found := map[string]int{}
	for _, rp := range messages[0].ResourceProfiles().All() {
		name, _ := rp.Resource().Attributes().Get("service.name")
		executable, _ := rp.Resource().Attributes().Get("process.executable.name")
		require.Equal(t, "sleep", executable.Str())
		found[name.Str()] += samplesOf(rp)
	}
	require.Equal(t, map[string]int{"shop": 1, "sleep": 1}, found)
}

func samplesOf(rp pprofile.ResourceProfiles) (n int) {
	for _, sp := range rp.ScopeProfiles().All() {
		for _, p := range sp.Profiles().All() {
			n += p.Samples().Len()
		}
	}
	return n
}
