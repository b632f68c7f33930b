// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testKubernetesGateway runs an agent and a gateway of the overlay `gateway`. A profile that a pod pushes to the agent
// reaches the backend through both, with the pod's attributes.
func testKubernetesGateway(t *testing.T, c *cluster) {
	deployment, err := c.admin.AppsV1().Deployments(installed).Get(t.Context(), "otelcol-profiles-gateway",
		metav1.GetOptions{})
	require.NoError(t, err)
	agentPod := c.addAgentPod(t, "gw", "node-c", podIP(4))
	require.Equal(t, "otelcol-profiles-gateway:4317", c.environment(t, agentPod)["BACKEND_ENDPOINT"])
	shop := c.addApplication(t, application{name: "shop-of-gateway", node: "node-c", ip: podIP(41)})

	to := startBackend(t)
	gatewayPod := c.addPod(t, podOf(deployment.Spec.Template, "otelcol-profiles-gateway-0", "node-c"), podIP(2))
	require.Len(t, gatewayPod.Spec.Volumes, 1, "a gateway has its configuration, and no token")
	gateway := c.runPod(t, gatewayPod, map[string]string{"BACKEND_ENDPOINT": to.address, "BACKEND_INSECURE": "true"})
	// There is no DNS of the cluster that could resolve the Service.
	agent := c.runPod(t, agentPod, map[string]string{"BACKEND_ENDPOINT": gateway.otlp})

	pushFromPod(t, agent, shop.Status.PodIP, func() bool { return to.service("shop-of-gateway") != nil })
	require.Equal(t, "node-c", to.service("shop-of-gateway")["k8s.node.name"])

	agent.Terminate(t)
	// A gateway's queue is in memory, and is delivered before the gateway ends.
	others := newAgents(t)
	others.send(gateway, 5)
	gateway.Terminate(t)
	arrived := leaves(t, to.messages())
	for name, times := range others.acked {
		require.Equal(t, times, arrived[name], name)
	}
	agent.requireNoErrors(t)
	gateway.requireNoErrors(t)
}
