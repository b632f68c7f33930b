// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// kubernetes begins the names of the pods of config/kubernetes.
const kubernetes = "kubernetes/"

// asPod gives a node the configuration, the environment and the limits of a pod. The agent and the gateway are those of the overlay
// `gateway`, the page is that of the overlay `page`. The cluster differs from a real one: its API server has no pods and needs no token.
func (r *siege) asPod(t *testing.T, n *node) {
	t.Helper()
	role := strings.TrimPrefix(r.config, kubernetes)
	name, overlay := "otelcol-profiles-"+role, "gateway"
	if role == "page" {
		overlay = role
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(),
		filepath.Join(collectortest.Repository, "config", "kubernetes", "overlays", overlay))
	require.NoError(t, err)
	var template corev1.PodTemplateSpec
	switch role {
	case "agent":
		template = object[appsv1.DaemonSet](t, built, "DaemonSet", name).Spec.Template
	case "page":
		template = object[appsv1.StatefulSet](t, built, "StatefulSet", name).Spec.Template
	default:
		template = object[appsv1.Deployment](t, built, "Deployment", name).Spec.Template
	}
	container := template.Spec.Containers[0]
	limits, requests := container.Resources.Limits, container.Resources.Requests
	r.containerMiB = int(limits.Memory().Value() / mib)
	r.goMiB = int(requests.Memory().Value() / mib)

	folder := t.TempDir()
	for _, volume := range template.Spec.Volumes {
		if volume.ConfigMap == nil {
			continue
		}
		for file, text := range object[corev1.ConfigMap](t, built, "ConfigMap", volume.ConfigMap.Name).Data {
			text = strings.ReplaceAll(text, "auth_type: serviceAccount", "auth_type: kubeConfig")
			text = strings.ReplaceAll(text, "- role: pod\n              selectors:", "- role: pod\n              kubeconfig_file: ${env:KUBECONFIG}\n              selectors:")
			// The percentages are of the container's memory, which is not this machine's.
			text = regexp.MustCompile(`\blimit_percentage: (\d+)|\bspike_limit_percentage: (\d+)`).ReplaceAllStringFunc(text, func(line string) string {
				key, value, _ := strings.Cut(line, "_percentage: ")
				percent, err := strconv.Atoi(value)
				require.NoError(t, err)
				return fmt.Sprintf("%s_mib: %d", key, percent*r.containerMiB/100)
			})
			require.NotContains(t, text, "serviceAccount")
			writeText(t, filepath.Join(folder, file), text)
		}
	}
	n.config = filepath.Join(folder, "config.yaml")
	kubeconfig := filepath.Join(folder, "kubeconfig")
	writeText(t, kubeconfig, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: %q}}]}`, startAPIServer(t)))
	n.env = append(n.env, "CONFIG_FOLDER="+folder, "KUBECONFIG="+kubeconfig, "QUEUE_DIRECTORY="+n.storage, "STORE_DIRECTORY="+n.output, "BACKEND_INSECURE=true",
		"METRICS_HOST=localhost", fmt.Sprint("GOMEMLIMIT=", requests.Memory().Value()))
	for _, variable := range container.Env {
		switch from := variable.ValueFrom; {
		case variable.Name == "GOMAXPROCS":
			n.env = append(n.env, fmt.Sprint("GOMAXPROCS=", limits.Cpu().Value()))
		case from != nil && from.FieldRef != nil:
			n.env = append(n.env, variable.Name+"=this")
		}
	}
}

// object returns an object of what kustomize built.
func object[T any](t *testing.T, built resmap.ResMap, kind, name string) (o T) {
	t.Helper()
	for _, resource := range built.Resources() {
		if resource.GetKind() == kind && resource.GetName() == name {
			text, err := resource.AsYAML()
			require.NoError(t, err)
			require.NoError(t, yaml.Unmarshal(text, &o))
			return o
		}
	}
	t.Fatalf("there is no %s %q", kind, name)
	return o
}

// startAPIServer starts an API server of a cluster without pods.
func startAPIServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if request.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
			return
		}
		if request.URL.Query().Get("sendInitialEvents") != "" {
			fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"1",`+
				`"annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		}
		_ = http.NewResponseController(w).Flush()
		<-request.Context().Done()
	}))
	t.Cleanup(server.CloseClientConnections)
	return server.URL
}
