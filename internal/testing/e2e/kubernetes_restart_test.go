// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// queued matches the size of an exporter's queue that is not empty.
var queued = regexp.MustCompile(`(?m)^otelcol_exporter_queue_size\{.*\} [1-9]`)

// testKubernetesRestart kills an agent's process while the backend is away. The kubelet starts the next container with
// the same volumes, and it delivers the queue of the first one.
func testKubernetesRestart(t *testing.T, c *cluster) {
	c.apply(t, "config/kubernetes/overlays/agent")
	pod := c.addAgentPod(t, "restart", "node-e", podIP(6))
	application := c.addApplication(t, application{name: "patient", node: "node-e", ip: podIP(61)})
	to := newBackend(t)
	agent := c.runPod(t, pod, map[string]string{"BACKEND_ENDPOINT": to.address, "BACKEND_INSECURE": "true"})
	// It has a name: the agent may not know the pods yet.
	postFromPod(t, agent, application.Status.PodIP, ":4040/v1/pprof?service.name=patient", "application/octet-stream",
		capturedPayloads(t)["go-cpu-labels.pb.gz"])
	host, _, err := net.SplitHostPort(agent.otlp)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		metrics, err := get("http://" + host + ":8888/metrics")
		return err == nil && queued.MatchString(metrics)
	}, startTimeout, 100*time.Millisecond, "the push is not in the queue")
	agent.Kill()

	to.start(t)
	again := &collector{}
	again.command = exec.Command(agent.command.Path, agent.command.Args[1:]...)
	again.command.Env = agent.command.Env
	again.start(t, pod.Name)
	require.Eventually(t, func() bool { return to.service("patient") != nil }, startTimeout, 100*time.Millisecond)
}
