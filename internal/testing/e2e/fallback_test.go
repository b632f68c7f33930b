// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// chain is three collectors: an agent with config/fallback.yaml, one in the middle that has logs pipelines only, and
// one with config/splunk.yaml at the end.
type chain struct {
	agent, middle, end *collector
	// middleAddress is where the middle receives, middleFolder that of its queue, which outlives its processes.
	middleAddress, middleFolder string
	// queue is the extension that has the queues of agent and middle. Without one they are delivered before the end.
	queue string
}

// startChain starts all three collectors. The log records have a format.
func startChain(t *testing.T, format, queue string) *chain {
	t.Helper()
	c := &chain{middleAddress: freeAddress(t), middleFolder: t.TempDir(), queue: queue}
	c.end = launch(t, splunkConfig)
	c.startMiddle(t)
	c.agent = launchWith(t, fallbackConfig, []string{
		// Retry sooner than in production, but wait longer for an answer: on a busy machine the request would be repeated.
		"--set=exporters.profiles_to_logs.timeout=60s",
		"--set=exporters.profiles_to_logs.retry_on_failure.initial_interval=50ms",
		"--set=exporters.profiles_to_logs.retry_on_failure.max_interval=200ms",
		// Splunk's formats have times in milliseconds. The tests of internal/formats cover times.
		"--set=receivers.pprof.timestamp_labels=[]",
		"--set=exporters.profiles_to_logs.sending_queue.storage=" + queue,
	}, "BACKEND_ENDPOINT="+c.middleAddress, "PROFILES_FORMAT="+format)
	return c
}

func (c *chain) startMiddle(t *testing.T) {
	t.Helper()
	c.middle = launch(t, fmt.Sprintf(`yaml:
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters:
  otlp_grpc:
    endpoint: %q
    tls: {insecure: true}
    timeout: 60s
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms, max_elapsed_time: 0}
    sending_queue: {storage: %s}
extensions: {file_storage: {directory: %q, fsync: true}}
service:
  extensions: [file_storage]
  pipelines: {logs: {receivers: [otlp], exporters: [otlp_grpc]}}
  telemetry: {metrics: {level: none}}
`, c.middleAddress, c.end.splunk, c.queue, c.middleFolder))
}

// terminate stops the collectors in order, so that each delivers to the next.
func (c *chain) terminate(t *testing.T) {
	t.Helper()
	c.agent.Terminate(t)
	c.middle.Terminate(t)
	c.end.Terminate(t)
}

// TestProfilesCrossLogs sends profiles, in each format, through a collector that has logs pipelines only, which is
// killed and restarted in between. Nothing that was acknowledged is lost, and only what was under way at the kill can
// arrive twice.
func TestProfilesCrossLogs(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"pprof", "otlp"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c, from := startChain(t, format, "file_storage"), newAgents(t)
			arrived := func() map[string]int { return leaves(t, readProfiles(t, c.end.outputDir)) }
			from.send(c.agent, 7)
			require.Equal(t, from.acked, waitForAll(t, from.acked, arrived), "without a kill everything arrives once")

			var sending sync.WaitGroup
			sending.Go(func() { from.send(c.agent, 33) })
			time.Sleep(100 * time.Millisecond)
			c.middle.Kill()
			time.Sleep(500 * time.Millisecond)
			c.startMiddle(t)
			sending.Wait()
			again, got := 0, waitForAll(t, from.acked, arrived)
			for name, times := range got {
				again += times - from.acked[name]
			}
			require.Len(t, got, len(from.acked))
			// Ten requests of up to twenty samples are under way at most, in the agent and in the middle.
			require.LessOrEqual(t, again, 2*10*20)
			require.Contains(t, c.agent.ownMetrics(t), "otelcol_exporter_profiles_to_logs_mode")
			c.terminate(t)
			require.Contains(t, c.agent.Log.String(), "the peer does not accept OTLP profiles")
			t.Logf("%d samples arrived, %d of them twice", len(got), again)
		})
	}
}

// TestPayloadsCrossLogs pushes every captured pprof through the same collectors. The last one writes the payload. A
// profile that is larger than a record arrives in parts, with the same sums.
func TestPayloadsCrossLogs(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"otlp", "pprof"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			c := startChain(t, format, "null")
			payloads := capturedPayloads(t)
			for name, payload := range payloads {
				c.agent.requirePush(t, name, payload)
			}
			c.terminate(t)
			got := c.end.output(t)
			for name, payload := range payloads {
				for _, part := range got[name] {
					require.NoError(t, profiletest.Check(part, profiletest.AllowRepeatedSamples()), name)
				}
				if len(got[name]) == 1 {
					requireSame(t, payload, got[name][0])
					continue
				}
				require.Equal(t, sumsOfPprof(t, payload), sumsOfOTLP(profilesIn(got[name]...)), name)
			}
		})
	}
}
