// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testKubernetesGateway runs an agent and a gateway of the overlay with gateways. What a pod pushes to the agent reaches
// the backend through both, with the pod's attributes.
func testKubernetesGateway(t *testing.T, c *cluster) {
	apps := c.admin.AppsV1()
	deployment, err := apps.Deployments(installed).Get(t.Context(), "otelcol-profiles-gateway", metav1.GetOptions{})
	require.NoError(t, err)
	daemonSet, err := apps.DaemonSets(installed).Get(t.Context(), "otelcol-profiles-agent", metav1.GetOptions{})
	require.NoError(t, err)
	agentPod := c.addPod(t, podOf(daemonSet.Spec.Template, "otelcol-profiles-agent-gw", "node-c"), podIP(4))
	require.Equal(t, "otelcol-profiles-gateway:4317", c.environment(t, agentPod)["BACKEND_ENDPOINT"])
	shop := c.addApplication(t, application{name: "shop-of-gateway", node: "node-c", ip: podIP(41)})

	to := &backend{address: freeAddress(t)}
	to.start(t)
	t.Cleanup(func() { to.server.Stop() })
	gatewayPod := c.addPod(t, podOf(deployment.Spec.Template, "otelcol-profiles-gateway-0", "node-c"), podIP(2))
	require.Len(t, gatewayPod.Spec.Volumes, 1, "a gateway has its configuration, and no token")
	gateway := c.runPod(t, gatewayPod, map[string]string{"BACKEND_ENDPOINT": to.address, "BACKEND_INSECURE": "true"})
	// There is no cluster's DNS here to resolve the Service.
	agent := c.runPod(t, agentPod, map[string]string{"BACKEND_ENDPOINT": gateway.endpoint})

	pushFromPod(t, agent, shop.Status.PodIP)
	require.Eventually(t, func() bool { return to.service("shop-of-gateway") != nil }, startTimeout, 100*time.Millisecond)
	require.Equal(t, "node-c", to.service("shop-of-gateway")["k8s.node.name"])

	agent.Terminate(t)
	// A gateway's queue is in memory, and it delivers what it has taken before it ends.
	others := &agents{t: t, acked: map[string]int{}}
	others.send(gateway, 5)
	gateway.Terminate(t)
	arrived := to.functions(t)
	for name, times := range others.acked {
		require.Equal(t, times, arrived[name], name)
	}
	agent.requireNoErrors(t)
	gateway.requireNoErrors(t)
}

// TestKubernetesConfigs lets the binary validate the configurations in the manifests, with the variables that their pods
// have, and with the token that a component adds.
func TestKubernetesConfigs(t *testing.T) {
	t.Setenv("BACKEND_ENDPOINT", "backend:4317")
	t.Setenv("BACKEND_TOKEN", "secret")
	for _, name := range []string{"K8S_NODE_NAME", "K8S_NAMESPACE_NAME", "K8S_POD_NAME", "K8S_POD_UID"} {
		t.Setenv(name, "value")
	}
	t.Setenv("CONFIG_FOLDER", "config/kubernetes/base")
	for _, config := range []string{"config/kubernetes/base/agent.yaml", "config/kubernetes/components/gateway/gateway.yaml"} {
		require.FileExists(t, repository+"/"+config)
		out, err := command(t, "validate", "--config", config,
			"--config=yaml:exporters::otlp_grpc::headers::authorization: Bearer ${env:BACKEND_TOKEN}")
		require.NoError(t, err, out)
	}
}
