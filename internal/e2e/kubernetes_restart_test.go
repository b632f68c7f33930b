// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// queued matches the size of an exporter's queue where it is not empty.
var queued = regexp.MustCompile(`(?m)^otelcol_exporter_queue_size\{.*\} [1-9]`)

// testKubernetesRestart kills an agent's process while the backend is away. The container that the kubelet starts next has
// the same volumes, and delivers what the one before had queued.
func testKubernetesRestart(t *testing.T, c *cluster) {
	c.apply(t, "config/kubernetes/overlays/agent")
	daemonSet, err := c.admin.AppsV1().DaemonSets(installed).Get(t.Context(), "otelcol-profiles-agent", metav1.GetOptions{})
	require.NoError(t, err)
	pod := c.addPod(t, podOf(daemonSet.Spec.Template, "otelcol-profiles-agent-restart", "node-e"), podIP(6))
	application := c.addApplication(t, application{name: "patient", node: "node-e", ip: podIP(61)})
	to := &backend{address: freeAddress(t)}
	agent := c.runPod(t, pod, map[string]string{"BACKEND_ENDPOINT": to.address, "BACKEND_INSECURE": "true"})
	pushFromPod(t, agent, application.Status.PodIP)
	host, _, err := net.SplitHostPort(agent.endpoint)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		response, err := client.Get("http://" + host + ":8888/metrics")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		metrics, err := io.ReadAll(response.Body)
		return err == nil && queued.Match(metrics)
	}, startTimeout, 100*time.Millisecond, "the push is not in the queue")
	agent.Kill()

	to.start(t)
	t.Cleanup(func() { to.server.Stop() })
	again := &collector{endpoint: agent.endpoint}
	again.command = exec.Command(agent.command.Path, agent.command.Args[1:]...)
	again.command.Env = agent.command.Env
	again.start(t, pod.Name)
	require.Eventually(t, func() bool { return to.service("patient") != nil }, startTimeout, 100*time.Millisecond)
}
