// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// The namespaces of the manifests, and of applications.
const installed, demo = "otelcol-profiles", "demo"

// TestKubernetes applies the shipped manifests to a real API server, and runs agents and gateways as their pods would.
// It needs Linux, and several minutes when it builds that server for the first time.
func TestKubernetes(t *testing.T) {
	collectortest.WantedBy(t, "E2E_KUBERNETES")
	c := startCluster(t)
	c.addNamespace(t, demo)
	t.Run("helm", func(t *testing.T) { testHelm(t, c) })
	t.Run("agent", func(t *testing.T) {
		c.apply(t, "config/kubernetes/overlays/agent")
		testKubernetesAgent(t, c)
	})
	t.Run("restart", func(t *testing.T) { testKubernetesRestart(t, c) })
	t.Run("gateway", func(t *testing.T) {
		c.apply(t, "config/kubernetes/overlays/gateway")
		testKubernetesGateway(t, c)
	})
	t.Run("page", func(t *testing.T) {
		c.apply(t, "config/kubernetes/overlays/page")
		testKubernetesPage(t, c)
	})
	t.Run("token", func(t *testing.T) { testKubernetesToken(t, c) })
	t.Run("host ports", func(t *testing.T) { testKubernetesHostPorts(t, c) })
}

// apply runs the command of the README. The API server checks fields and values, and warns of pods that their namespace
// does not allow.
func (c *cluster) apply(t *testing.T, folder string) {
	t.Helper()
	out := c.kubectl(t, "apply", "-k", folder)
	t.Logf("kubectl apply -k %s\n%s", folder, out)
	require.NotContains(t, out, "Warning")
	// The cluster has exactly what the files have.
	require.Empty(t, c.kubectl(t, "diff", "-k", folder))
}

// testKubernetesHostPorts shows that the namespace allows host ports only with the component host-ports.
func testKubernetesHostPorts(t *testing.T, c *cluster) {
	template := c.agents(t).Spec.Template
	template.Spec.Containers[0].Ports[0].HostPort = 4317
	_, err := c.admin.CoreV1().Pods(installed).Create(t.Context(), podOf(template, "with-a-host-port", "node-a"),
		metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `violates PodSecurity "restricted:latest": hostPort`)

	c.apply(t, overlayOf(t, "base", "components/host-ports"))
	c.addAgentPod(t, "hp", "node-a", podIP(3))
}

// overlayOf writes an overlay as a user does, and returns its folder.
func overlayOf(t *testing.T, base string, components ...string) string {
	t.Helper()
	folder := t.TempDir()
	shipped, err := filepath.Abs(filepath.Join(repository, "config", "kubernetes"))
	require.NoError(t, err)
	shipped, err = filepath.Rel(folder, shipped)
	require.NoError(t, err)
	text := fmt.Sprintf("resources: [%s]\nnamespace: %s\ncomponents:\n", filepath.Join(shipped, base), installed)
	for _, component := range components {
		text += "- " + filepath.Join(shipped, component) + "\n"
	}
	writeFile(t, filepath.Join(folder, "kustomization.yaml"), text)
	return folder
}
