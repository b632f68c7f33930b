// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestDocs compares the documentation with the manifests: annotations, ports, sizes, folders.
func TestDocs(t *testing.T) {
	rules := profiletest.FileBytes(t, "base/relabel.yaml")
	root := filepath.Join("..", "..")
	for _, name := range []string{"docs/kubernetes.md", "docs/kubernetes-operations.md"} {
		content := profiletest.FileBytes(t, filepath.Join(root, name))
		for _, match := range regexp.MustCompile(`pprof\.io/(scrape|port_name|port|path|[a-z_]+)`).
			FindAllStringSubmatch(string(content), -1) {
			require.Contains(t, string(rules), "__meta_kubernetes_pod_annotation_pprof_io_"+match[1]+"]", match[0])
		}
		for _, match := range regexp.MustCompile(`apply -k (\S+?)\x60?\s`).FindAllStringSubmatch(string(content), -1) {
			if strings.Contains(match[1], "/") {
				require.DirExists(t, filepath.Join(root, match[1]))
			}
		}
		for _, match := range regexp.MustCompile(`\]\(([^)#:]+)`).FindAllStringSubmatch(string(content), -1) {
			if strings.Contains(match[1], "kubernetes") {
				_, err := os.Stat(filepath.Join(root, filepath.Dir(name), match[1]))
				require.NoError(t, err, name)
			}
		}
		if name != "docs/kubernetes.md" {
			continue
		}
		for _, service := range all[*corev1.Service](build(t, "overlays/agent")) {
			for _, port := range service.Spec.Ports {
				require.Contains(t, string(content), strconv.Itoa(int(port.Port)), name)
			}
		}
	}
	page := profiletest.FileBytes(t, filepath.Join(root, "docs", "kubernetes-operations.md"))
	agent := build(t, "overlays/agent").workloads()[0].container()
	for _, size := range []int64{agent.Resources.Requests.Memory().Value(), agent.Resources.Limits.Memory().Value()} {
		require.Contains(t, string(page), strconv.FormatInt(size>>20, 10)+" MiB")
	}
}

// TestDocumentedObjects reads the objects that the page on operations has for Grafana. They select the page's pod.
func TestDocumentedObjects(t *testing.T) {
	content := profiletest.FileBytes(t, filepath.Join("..", "..", "docs", "kubernetes-operations.md"))
	_, text, _ := strings.Cut(string(content), "```yaml of Kubernetes\n")
	text, _, found := strings.Cut(text, "```")
	require.True(t, found)
	var m manifest
	for object := range strings.SplitSeq(text, "---\n") {
		decoded, _, err := strict.Decode([]byte(object), nil, nil)
		require.NoError(t, err)
		m = append(m, decoded)
	}
	pages := build(t, "overlays/page")
	service := find[*corev1.Service](t, m, "profiles")
	policy := find[*networkingv1.NetworkPolicy](t, m, "profiles")
	for _, selector := range []map[string]string{service.Spec.Selector, policy.Spec.PodSelector.MatchLabels} {
		require.Equal(t, "otelcol-profiles-page", pages.selected(t, selector).name)
	}
	require.Equal(t, policy.Spec.Ingress[0].Ports[0].Port.IntVal, service.Spec.Ports[0].Port)
	require.Contains(t, string(content), "allowed_hosts: ["+service.Name+"."+service.Namespace+"]")
}
