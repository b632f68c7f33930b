// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testKubernetesPage runs an agent and the page of the overlay `page`. A profile that a pod pushes to the agent is on
// the page, also after the page's pod has been replaced.
func testKubernetesPage(t *testing.T, c *cluster) {
	set, err := c.admin.AppsV1().StatefulSets(installed).Get(t.Context(), "otelcol-profiles-page", metav1.GetOptions{})
	require.NoError(t, err)
	agentPod := c.addAgentPod(t, "page", "node-f", podIP(8))
	require.Equal(t, "otelcol-profiles-page:4317", c.environment(t, agentPod)["BACKEND_ENDPOINT"])
	shop := c.addApplication(t, application{name: "shop-of-page", node: "node-f", ip: podIP(81)})

	template := set.Spec.Template
	// The volume claim is a folder here, which the next container has, too.
	require.Equal(t, "/var/lib/otelcol-profiles", template.Spec.Containers[0].VolumeMounts[1].MountPath)
	template.Spec.Containers[0].VolumeMounts = template.Spec.Containers[0].VolumeMounts[:1]
	pod := c.addPod(t, podOf(template, "otelcol-profiles-page-0", "node-f"), podIP(9))
	address := net.JoinHostPort(pod.Status.PodIP, "4042")
	page := c.runPod(t, pod, map[string]string{"PAGE_ENDPOINT": address})
	agent := c.runPod(t, agentPod, map[string]string{"BACKEND_ENDPOINT": page.otlp})
	isOnPage := func() bool {
		body, err := get("http://" + address + "/api/services")
		return err == nil && strings.Contains(body, `"shop-of-page"`)
	}
	pushFromPod(t, agent, shop.Status.PodIP, isOnPage)

	agent.Terminate(t)
	page.Terminate(t)
	agent.requireNoErrors(t)
	page.requireNoErrors(t)
	again := &collector{command: exec.Command(page.command.Path, page.command.Args[1:]...)}
	again.command.Env = page.command.Env
	again.start(t, pod.Name)
	require.Eventually(t, isOnPage, startTimeout, 100*time.Millisecond)
}

// testHelm installs the chart, changes its mode, and removes it. The objects are those of the overlays
// (config/kubernetes), so the other tests need not run for both.
func testHelm(t *testing.T, c *cluster) {
	helm := func(args ...string) string {
		return requireRun(t, repository, []string{"KUBECONFIG=" + c.kubeconfig}, "go",
			append([]string{"tool", "-modfile=internal/build/tools/helm/go.mod", "helm"}, args...)...)
	}
	const chart, own = "config/helm", "by-helm"
	out := helm("install", "profiles", chart, "--set", "namespace.name="+own)
	t.Logf("helm install\n%s", out)
	require.Contains(t, out, "STATUS: deployed")
	require.NotContains(t, out, "Warning")
	for _, set := range []string{
		"mode=gateway", "mode=gateway,gateway.volumes=true,backend.token=true,gateway.storage.class=fast",
		"mode=page", "mode=page,ebpf=true,hostPorts=true,agent.env.SAMPLES_PER_SECOND=49",
	} {
		out = helm("upgrade", "profiles", chart, "--set", "namespace.name="+own+","+set)
		require.Contains(t, out, "STATUS: deployed")
		require.NotContains(t, out, "Warning")
	}
	kinds := []string{"get", "daemonset,deployment,statefulset,service,configmap,networkpolicy", "-n", own, "-o", "name"}
	require.Subset(t, strings.Fields(c.kubectl(t, kinds...)), []string{
		"daemonset.apps/otelcol-profiles-agent", "statefulset.apps/otelcol-profiles-page", "service/otelcol-profiles-page",
		"configmap/otelcol-profiles-agent-env", "networkpolicy.networking.k8s.io/otelcol-profiles-page",
	})
	helm("uninstall", "profiles")
	require.Empty(t, c.kubectl(t, kinds...))
	require.Contains(t, c.kubectl(t, "get", "namespace", own), "Active", "with what is on its volumes")
}
