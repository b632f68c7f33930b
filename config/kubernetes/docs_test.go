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
)

// TestDocs compares the documentation with the manifests: annotations, ports, sizes, folders.
func TestDocs(t *testing.T) {
	rules, err := os.ReadFile("base/relabel.yaml")
	require.NoError(t, err)
	root := filepath.Join("..", "..")
	for _, name := range []string{"docs/kubernetes.md", "docs/kubernetes-operations.md"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
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
	page, err := os.ReadFile(filepath.Join(root, "docs", "kubernetes-operations.md"))
	require.NoError(t, err)
	agent := build(t, "overlays/agent").workloads()[0].container()
	for _, size := range []int64{agent.Resources.Requests.Memory().Value(), agent.Resources.Limits.Memory().Value()} {
		require.Contains(t, string(page), strconv.FormatInt(size>>20, 10)+" MiB")
	}
}
