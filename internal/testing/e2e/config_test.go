// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
)

// sendAll sends a pprof, the same as OTLP, and a Splunk agent's log records. It returns the number of samples of the
// first two by service.
func (c *collector) sendAll(t *testing.T, prefix string) map[string]int {
	t.Helper()
	payload := capturedPayloads(t)["go-cpu-labels.pb.gz"]
	c.requirePush(t, prefix+"pprof", payload)
	samples := c.exportPayload(t, prefix+"otlp", payload)

	records, err := os.ReadFile(filepath.Join(repository, "testdata", "splunk", "v4.11.0-002-cpu-continuous.otlp-logs.pb"))
	require.NoError(t, err)
	requireLogs(t, c.splunkHTTP, records)
	return map[string]int{prefix + "pprof": samples, prefix + "otlp": samples}
}

// exportPayload sends a pprof as OTLP for a service, and returns the number of its samples.
func (c *collector) exportPayload(t *testing.T, service string, payload []byte) int {
	t.Helper()
	pd, _, err := decode.Decode(payload, decode.Options{})
	require.NoError(t, err)
	pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", service)
	require.NoError(t, export(dial(t, c.otlp), pd))
	return pd.SampleCount()
}

// scrapeThisProcess lists this process as a target with the name of a service.
func (c *collector) scrapeThisProcess(t *testing.T, service string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	target := httptest.NewServer(mux)
	t.Cleanup(target.Close)
	file := fmt.Sprintf("- targets: [%q]\n  labels: {service_name: %s}\n", target.Listener.Addr(), service)
	require.NoError(t, os.WriteFile(filepath.Join(c.targets, "test.yaml"), []byte(file), 0o600))
}

// TestAgentDelivers sends profiles of every kind through config/agent.yaml, and again while the backend is away and the
// agent is restarted.
func TestAgentDelivers(t *testing.T) {
	t.Parallel()
	to := startBackend(t)
	env := []string{"BACKEND_ENDPOINT=" + to.address, "QUEUE_DIRECTORY=" + t.TempDir()}
	agent := startBatching(t, agentConfig, env...)
	agent.scrapeThisProcess(t, "first-scraped")
	to.requireSamples(t, agent.sendAll(t, "first-"))
	require.Eventually(t, func() bool {
		samples := samplesByService(profilesIn(to.messages()...))
		return samples["first-scraped"] > 0 && samples["demo-node-shop"] > 0
	}, startTimeout, 100*time.Millisecond, "scraped profiles and those of the Splunk agent arrive")
	require.Contains(t, requireGet(t, "http://"+agent.status+"/targets"), "first-scraped", "the page of targets")
	host, err := os.Hostname()
	require.NoError(t, err)
	for service, attributes := range to.services() {
		require.Equal(t, "test", attributes["deployment.environment.name"], service)
		// The Splunk agent's records name the host that it ran on.
		require.Equal(t, service != "demo-node-shop", attributes["host.name"] == host, "%s ran on %s", service,
			attributes["host.name"])
	}

	to.server.Stop()
	want := agent.sendAll(t, "second-")
	agent.Terminate(t)
	agent = startBatching(t, agentConfig, env...)
	to.start(t)
	to.requireSamples(t, want)
	agent.Terminate(t)
}

// TestStandaloneWritesAndDelivers sends profiles of every kind through config/standalone.yaml, with EXPORTERS set:
// first to its file, then to a backend.
func TestStandaloneWritesAndDelivers(t *testing.T) {
	t.Parallel()
	standalone := startBatching(t, standaloneConfig, "EXPORTERS=[profile_store, file]")
	want := standalone.sendAll(t, "file-")
	standalone.Terminate(t)
	got := samplesByService(profilesIn(readProfiles(t, standalone.outputDir)...))
	for service, samples := range want {
		require.Equal(t, samples, got[service], "%s: %v", service, got)
	}

	to := startBackend(t)
	standalone = startBatching(t, standaloneConfig, "EXPORTERS=[otlp_grpc]", "BACKEND_ENDPOINT="+to.address)
	to.requireSamples(t, standalone.sendAll(t, "backend-"))
	standalone.Terminate(t)
}
