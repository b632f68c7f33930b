// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofconv"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

const (
	agentConfig      = "config/agent.yaml"
	gatewayConfig    = "config/gateway.yaml"
	standaloneConfig = "config/standalone.yaml"
)

// everything is a collector with a configuration that takes profiles of all kinds.
type everything struct {
	*collector
	otlp, splunk, health string
	// targets is the folder in which it looks for files that list what to scrape.
	targets string
}

// startEverything starts a configuration, or one made of it, with all its addresses moved to where nothing else is.
func startEverything(t *testing.T, config, outputDir string, env ...string) *everything {
	t.Helper()
	e := &everything{otlp: freeAddress(t), splunk: freeAddress(t), health: freeAddress(t), targets: t.TempDir()}
	endpoint := freeAddress(t)
	e.collector = launch(t, endpoint, outputDir, config, append([]string{
		"PPROF_ENDPOINT=" + endpoint,
		"OTLP_GRPC_ENDPOINT=" + e.otlp, "OTLP_HTTP_ENDPOINT=" + freeAddress(t),
		"SPLUNK_HTTP_ENDPOINT=" + e.splunk, "SPLUNK_GRPC_ENDPOINT=" + freeAddress(t), "SPLUNK_HEC_ENDPOINT=" + freeAddress(t),
		"HEALTH_ENDPOINT=" + e.health, "PROFILES_OUT=" + outputDir, "SCRAPE_TARGETS=" + e.targets + "/*.yaml",
		"BATCH_TIMEOUT=50ms", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test",
	}, env...)...)
	e.requireHealthy(t)
	return e
}

func (e *everything) requireHealthy(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := client.Get("http://" + e.health)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, startTimeout, 50*time.Millisecond, "the health check answers")
}

// sendAll sends a pprof, the same as OTLP, and a Splunk agent's log records, and gives the number of samples of each by
// the name of its service.
func (e *everything) sendAll(t *testing.T, prefix string) map[string]int {
	t.Helper()
	payload := capturedPayloads(t)["go-cpu-labels.pb.gz"]
	status, answer, err := e.push(prefix+"pprof", payload)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, status, answer)

	pd, _, err := pprofconv.Decode(payload, pprofconv.DecodeOptions{})
	require.NoError(t, err)
	pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", prefix+"otlp")
	require.NoError(t, export(t, e.otlp, pprofileotlp.NewExportRequestFromProfiles(pd)))

	records, err := os.ReadFile(filepath.Join(repository, "testdata", "splunk", "v4.11.0-002-cpu-continuous.otlp-logs.pb"))
	require.NoError(t, err)
	response := (&collector{endpoint: e.splunk}).postLogs(t, records)
	require.Zero(t, response.PartialSuccess().RejectedLogRecords())
	return map[string]int{prefix + "pprof": pd.SampleCount(), prefix + "otlp": pd.SampleCount()}
}

func export(t *testing.T, endpoint string, request pprofileotlp.ExportRequest, options ...grpc.DialOption) error {
	t.Helper()
	if len(options) == 0 {
		options = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	connection, err := grpc.NewClient(endpoint, options...)
	require.NoError(t, err)
	defer connection.Close()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	_, err = pprofileotlp.NewGRPCClient(connection).Export(ctx, request)
	return err
}

// list lets it scrape this process as a service.
func (e *everything) list(t *testing.T, service string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	target := httptest.NewServer(mux)
	t.Cleanup(target.Close)
	file := fmt.Sprintf("- targets: [%q]\n  labels: {service_name: %s}\n", target.Listener.Addr(), service)
	require.NoError(t, os.WriteFile(filepath.Join(e.targets, "test.yaml"), []byte(file), 0o600))
}

// page gets the page of targets.
func (e *everything) page(t *testing.T) string {
	t.Helper()
	response, err := client.Get("http://" + e.status + "/targets")
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}

// arrived counts the samples that the backend has answered for by the name of their service, and gives the services'
// resources.
func (b *backend) arrived(t *testing.T) (samples map[string]int, resources map[string]pcommon.Map) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	samples, resources = map[string]int{}, map[string]pcommon.Map{}
	for _, pd := range b.received {
		require.NoError(t, profiletest.Check(pd))
		for _, rp := range pd.ResourceProfiles().All() {
			name, _ := rp.Resource().Attributes().Get("service.name")
			resources[name.Str()] = rp.Resource().Attributes()
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					samples[name.Str()] += p.Samples().Len()
				}
			}
		}
	}
	return samples, resources
}

// requireArrived waits until as many samples of each service are at the backend, and expects no more.
func (b *backend) requireArrived(t *testing.T, want map[string]int) {
	t.Helper()
	var got map[string]int
	require.Eventually(t, func() bool {
		got, _ = b.arrived(t)
		for service, samples := range want {
			if got[service] < samples {
				return false
			}
		}
		return true
	}, startTimeout, 100*time.Millisecond, "all that was acknowledged arrives: %v", want)
	for service, samples := range want {
		require.Equal(t, samples, got[service], service)
	}
}

// TestAgentDelivers sends profiles of every kind through config/agent.yaml, and again while the backend is away and the
// agent is restarted meanwhile.
func TestAgentDelivers(t *testing.T) {
	t.Parallel()
	to := &backend{address: freeAddress(t)}
	to.start(t)
	storage := t.TempDir()
	env := []string{"BACKEND_ENDPOINT=" + to.address, "AGENT_STORAGE=" + storage}
	agent := startEverything(t, agentConfig, t.TempDir(), env...)
	agent.list(t, "first-scraped")
	to.requireArrived(t, agent.sendAll(t, "first-"))
	var resources map[string]pcommon.Map
	require.Eventually(t, func() bool {
		var samples map[string]int
		samples, resources = to.arrived(t)
		return samples["first-scraped"] > 0 && samples["demo-node-shop"] > 0
	}, startTimeout, 100*time.Millisecond, "what it scrapes arrives, and what the Splunk agent sent")
	require.Contains(t, agent.page(t), "first-scraped", "the page of targets")
	host, err := os.Hostname()
	require.NoError(t, err)
	for service, attributes := range resources {
		name, _ := attributes.Get("host.name")
		environment, _ := attributes.Get("deployment.environment.name")
		require.Equal(t, "test", environment.Str(), service)
		// The Splunk agent says itself which host it ran on.
		require.Equal(t, service != "demo-node-shop", name.Str() == host, "%s ran on %s", service, name.Str())
	}

	to.server.Stop()
	want := agent.sendAll(t, "second-")
	agent.Terminate(t)
	agent = startEverything(t, agentConfig, t.TempDir(), env...)
	to.start(t)
	t.Cleanup(func() { to.server.Stop() })
	to.requireArrived(t, want)
	agent.Terminate(t)
}

// TestStandaloneWritesAndDelivers sends profiles of every kind through config/standalone.yaml, which writes them to a
// file, and once more with EXPORTERS set to a backend.
func TestStandaloneWritesAndDelivers(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	standalone := startEverything(t, standaloneConfig, out, "STANDALONE_STORAGE="+t.TempDir())
	want := standalone.sendAll(t, "file-")
	standalone.Terminate(t)
	got := map[string]int{}
	for _, pd := range readProfiles(t, out) {
		for _, rp := range pd.ResourceProfiles().All() {
			name, _ := rp.Resource().Attributes().Get("service.name")
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					got[name.Str()] += p.Samples().Len()
				}
			}
		}
	}
	for service, samples := range want {
		require.Equal(t, samples, got[service], "%s: %v", service, got)
	}

	to := &backend{address: freeAddress(t)}
	to.start(t)
	t.Cleanup(func() { to.server.Stop() })
	standalone = startEverything(t, standaloneConfig, out, "STANDALONE_STORAGE="+t.TempDir(),
		"EXPORTERS=[otlp_grpc]", "BACKEND_ENDPOINT="+to.address)
	to.requireArrived(t, standalone.sendAll(t, "backend-"))
	standalone.Terminate(t)
}
