// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// chain is three collectors: an agent with config/fallback.yaml, one in the middle that has logs pipelines only, and
// one with config/splunk.yaml at the end.
type chain struct {
	agent, middle, end *collector
	// format is that of the log records.
	format string
	// agentTo is the address that the agent sends to, endAddress the one at which the end receives.
	agentTo, endAddress string
	// agentQueue and middleQueue outlive the processes.
	agentQueue, middleQueue string
}

// newChain prepares a chain. Nothing runs yet.
func newChain(t *testing.T, agentTo, endAddress, format string) *chain {
	t.Helper()
	return &chain{format: format, agentTo: agentTo, endAddress: endAddress, agentQueue: t.TempDir(),
		middleQueue: t.TempDir()}
}

// startChain starts all three collectors.
func startChain(t *testing.T, format string) *chain {
	t.Helper()
	c := newChain(t, freeAddress(t), freeAddress(t), format)
	c.startEnd(t)
	c.startMiddle(t)
	c.startAgent(t)
	return c
}

func (c *chain) startAgent(t *testing.T) {
	t.Helper()
	c.agent = launchWith(t, fallbackConfig, []string{
		// Retry sooner than in production, but wait longer for an answer: on a busy machine the request would be repeated.
		"--set=exporters.profiles_to_logs.timeout=60s",
		"--set=exporters.profiles_to_logs.retry_on_failure.initial_interval=50ms",
		"--set=exporters.profiles_to_logs.retry_on_failure.max_interval=200ms",
		// Splunk's formats have times in milliseconds. The tests of internal/formats cover times.
		"--set=receivers.pprof.timestamp_labels=[]",
	}, "BACKEND_ENDPOINT="+c.agentTo, "PROFILES_FORMAT="+c.format, "QUEUE_DIRECTORY="+c.agentQueue)
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
    sending_queue: {storage: file_storage}
extensions: {file_storage: {directory: %q, fsync: true}}
service:
  extensions: [file_storage]
  pipelines: {logs: {receivers: [otlp], exporters: [otlp_grpc]}}
  telemetry: {metrics: {level: none}}
`, c.agentTo, c.endAddress, c.middleQueue))
}

func (c *chain) startEnd(t *testing.T) {
	t.Helper()
	c.end = launch(t, splunkConfig, "SPLUNK_GRPC_ENDPOINT="+c.endAddress)
}

// terminate stops the collectors in order, so that each delivers to the next.
func (c *chain) terminate(t *testing.T) {
	t.Helper()
	c.agent.Terminate(t)
	c.middle.Terminate(t)
	c.end.Terminate(t)
}

// arrived returns the observations that are at the end.
func (c *chain) arrived(t *testing.T) observations {
	t.Helper()
	arrived := observations{}
	for _, pd := range readProfiles(t, c.end.outputDir) {
		require.NoError(t, profiletest.Check(pd))
		arrived.add(pd)
	}
	return arrived
}

// requireSeen waits until all that was acknowledged, and nothing else, is at the end. It returns how many observations
// arrived again.
func (c *chain) requireSeen(t *testing.T, acked observations) (again int) {
	t.Helper()
	got := waitForAll(t, acked, func() observations { return c.arrived(t) })
	for key := range acked {
		again += int(got[key]) - 1
	}
	require.Len(t, got, len(acked))
	return again
}

// sendMessages sends messages one after the other, and returns the observations of those that were acknowledged.
func (c *chain) sendMessages(t *testing.T, from, to int) observations {
	client := dial(t, c.agent.otlp)
	acked := observations{}
	for number := from; number < to; number++ {
		pd := message(number)
		if err := export(client, pd); err != nil {
			t.Errorf("the agent refused a message: %v", err)
			return acked
		}
		acked.add(pd)
	}
	return acked
}
