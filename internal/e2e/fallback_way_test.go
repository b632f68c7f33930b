// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

const fallbackConfig = "config/fallback.yaml"

// launch starts the binary with a configuration, at an endpoint that the environment or the configuration names.
func launch(t *testing.T, endpoint, outputDir, config string, env ...string) *collector {
	t.Helper()
	var flags []string
	if config == fallbackConfig {
		// The test does not wait for a peer as long as one would in earnest, but longer for an answer: where that is late
		// the request goes out again.
		flags = append(flags, "--set=exporters.profiles_to_logs.timeout=60s",
			"--set=exporters.profiles_to_logs.retry_on_failure.initial_interval=50ms",
			"--set=exporters.profiles_to_logs.retry_on_failure.max_interval=200ms",
			// Splunk's formats have times in milliseconds; what becomes of times is internal/formats' to test.
			"--set=receivers.pprof.timestamp_labels=[]")
	}
	return launchWith(t, endpoint, outputDir, config, flags, env...)
}

// way is three collectors: an agent with config/fallback.yaml, one that knows nothing but logs, and one with
// config/splunk.yaml at the end.
type way struct {
	agent, middle, end *collector
	// format is the records', detail what is compared.
	format string
	detail detail
	// pprof is where the agent takes pushes.
	pprof string
	// startAgent and startMiddle start those collectors, again too, with the queue that they left; startEnd the last.
	startAgent, startMiddle, startEnd func() *collector
}

// newWay prepares a way, on which the agent sends to backend.
func newWay(t *testing.T, backend, endGRPC, format string) *way {
	t.Helper()
	w := &way{pprof: freeAddress(t), format: format, detail: inPprof}
	if format == "text" {
		w.detail = inAllFormats
	}
	agentGRPC, agentHTTP, queue, out := freeAddress(t), freeAddress(t), t.TempDir(), t.TempDir()
	w.startAgent = func() *collector {
		agent := launch(t, w.pprof, "", fallbackConfig, "OTLP_GRPC_ENDPOINT="+agentGRPC, "OTLP_HTTP_ENDPOINT="+agentHTTP,
			"PPROF_ENDPOINT="+w.pprof, "BACKEND_ENDPOINT="+backend, "PROFILES_FORMAT="+format, "FALLBACK_STORAGE="+queue)
		agent.endpoint = agentGRPC
		return agent
	}
	w.startEnd = func() *collector {
		return launch(t, endGRPC, out, "config/splunk.yaml", "SPLUNK_GRPC_ENDPOINT="+endGRPC, "SPLUNK_HTTP_ENDPOINT="+freeAddress(t),
			"SPLUNK_HEC_ENDPOINT="+freeAddress(t), "PROFILES_OUT="+out)
	}
	return w
}

// startWay starts all three collectors.
func startWay(t *testing.T, format string) *way {
	t.Helper()
	endGRPC, middleGRPC, storage := freeAddress(t), freeAddress(t), t.TempDir()
	w := newWay(t, middleGRPC, endGRPC, format)
	w.end = w.startEnd()
	middle := fmt.Sprintf(`yaml:
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters:
  otlp_grpc:
    endpoint: %q
    tls: {insecure: true}
    timeout: 60s
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms, max_elapsed_time: 0}
    sending_queue: {storage: file_storage}
extensions: {file_storage: {directory: %q, fsync: true}}
service:
  extensions: [file_storage]
  pipelines: {logs: {receivers: [otlp], exporters: [otlp_grpc]}}
  telemetry: {metrics: {level: none}}
`, middleGRPC, endGRPC, storage)
	w.startMiddle = func() *collector { return launch(t, middleGRPC, "", middle) }
	w.middle = w.startMiddle()
	w.agent = w.startAgent()
	return w
}

// seen gives the observations that are at the end.
func (w *way) seen(t *testing.T) seen {
	t.Helper()
	s := seen{}
	for _, messages := range w.end.output(t) {
		for _, pd := range messages {
			require.NoError(t, profiletest.Check(pd))
			s.add(pd, w.detail)
		}
	}
	return s
}

// requireSeen waits until all that was acknowledged is at the end, and nothing else, and gives how many observations arrived again.
func (w *way) requireSeen(t *testing.T, acked seen) (again int) {
	t.Helper()
	var got seen
	require.Eventually(t, func() bool {
		got = w.seen(t)
		return len(got) >= len(acked)
	}, startTimeout, 200*time.Millisecond, "every acknowledged sample arrives")
	for key := range acked {
		require.Positive(t, got[key], key)
		again += int(got[key]) - 1
	}
	require.Len(t, got, len(acked))
	return again
}

// sendMessages sends messages one after the other, and gives the observations of those that were acknowledged.
func (w *way) sendMessages(t *testing.T, from, to int) seen {
	connection, err := grpc.NewClient(w.agent.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer connection.Close()
	client := pprofileotlp.NewGRPCClient(connection)
	acked := seen{}
	for number := from; number < to; number++ {
		pd := message(number)
		observed := seen{}
		observed.add(pd, w.detail)
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		_, err := client.Export(ctx, pprofileotlp.NewExportRequestFromProfiles(pd))
		cancel()
		if err != nil {
			t.Errorf("the agent refused a message: %v", err)
			return acked
		}
		maps.Copy(acked, observed)
	}
	return acked
}
