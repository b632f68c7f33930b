// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// helm renders the chart of config/helm.
type helm string

// newHelm compiles the program that renders charts.
func newHelm(t *testing.T) helm {
	t.Helper()
	program := filepath.Join(t.TempDir(), "helm")
	out, err := exec.CommandContext(t.Context(), "go", "-C",
		filepath.Join("..", "..", "internal", "build", "tools", "helm"), "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return helm(program)
}

// template checks the chart as `helm lint` does, and returns the objects of `helm template`, or what is wrong.
func (h helm) template(t *testing.T, release, values string) (manifest, string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), string(h), filepath.Join("..", "helm"), release)
	command.Stdin = strings.NewReader(values)
	var problem bytes.Buffer
	command.Stderr = &problem
	out, err := command.Output()
	if err != nil {
		return nil, problem.String()
	}
	var objects []json.RawMessage
	require.NoError(t, json.Unmarshal(out, &objects))
	var m manifest
	for _, text := range objects {
		object, _, err := strict.Decode(text, nil, nil)
		require.NoError(t, err, "%s", text)
		m = append(m, object)
	}
	return m, ""
}

// TestHelm compares the chart's objects with those of the overlays, which are tested in the other files. The
// differences are those between the tools: kustomize has a hash of a ConfigMap in its name, and Helm, which deletes old
// ConfigMaps, an annotation of the pods. Helm also keeps the namespace, with its volumes.
func TestHelm(t *testing.T) {
	h := newHelm(t)
	requireSame(t, build(t, "overlays/agent"), h.mustTemplate(t, `{}`))
	for overlay, values := range map[string]string{
		"agent":            `{"mode": "agent"}`,
		"gateway":          `{"mode": "gateway"}`,
		"page":             `{"mode": "page"}`,
		"agent, token":     `{"backend": {"token": true}}`,
		"gateway, token":   `{"mode": "gateway", "backend": {"token": true}}`,
		"agent, ports":     `{"hostPorts": true}`,
		"gateway, all":     `{"mode": "gateway", "hostPorts": true, "backend": {"token": true}}`,
		"gateway, volumes": `{"mode": "gateway", "gateway": {"volumes": true}, "backend": {"token": true}}`,
		"agent, secure":    `{"securePorts": true}`,
		"gateway, secure":  `{"mode": "gateway", "securePorts": true, "gateway": {"volumes": true}}`,
		"page, secure":     `{"mode": "page", "securePorts": true}`,
		"agent, ebpf":      `{"ebpf": true}`,
		"gateway, ebpf":    `{"mode": "gateway", "hostPorts": true, "ebpf": true}`,
		"page, ebpf":       `{"mode": "page", "hostPorts": true, "ebpf": true}`,
	} {
		t.Run(overlay, func(t *testing.T) {
			o := overlays[overlay]
			requireSame(t, build(t, o.folder, o.components...), h.mustTemplate(t, values))
		})
	}
	t.Run("values", func(t *testing.T) { testHelmValues(t, h) })
}

// testHelmValues sets each value.
func testHelmValues(t *testing.T, h helm) {
	m := h.mustTemplate(t, `{
		"mode": "gateway", "clusterName": "east", "scrapeInterval": "1m",
		"image": {"repository": "registry.example/profiles", "tag": "7", "pullPolicy": "Always", "pullSecrets": ["registry"]},
		"backend": {"endpoint": "pyroscope:4317", "insecure": true},
		"namespace": {"name": "monitoring"},
		"agent": {
			"env": {"SAMPLES_PER_SECOND": 49, "SCRAPE_INTERVAL": "30s"},
			"config": {"processors": {"memory_limiter": {"limit_percentage": 70}}},
			"patch": {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}, "spec": {
				"tolerations": [],
				"containers": [{"name": "otelcol-profiles", "resources": {"limits": {"memory": "1Gi"}}, "env": [{"name": "HTTPS_PROXY", "value": "proxy"}]}]
			}}}}
		},
		"gateway": {"minReplicas": 3, "maxReplicas": 4, "volumes": true, "storage": {"size": "9Gi", "class": "fast"}, "env": {"BACKEND_COMPRESSION": "zstd"}}
	}`)
	agent := find[*appsv1.DaemonSet](t, m, "otelcol-profiles-agent")
	pod := agent.Spec.Template
	container := pod.Spec.Containers[0]
	assert.Equal(t, "registry.example/profiles:7", container.Image)
	assert.Equal(t, corev1.PullAlways, container.ImagePullPolicy)
	assert.Equal(t, []corev1.LocalObjectReference{{Name: "registry"}}, pod.Spec.ImagePullSecrets)
	assert.Equal(t, "b", pod.Annotations["a"])
	assert.Empty(t, pod.Spec.Tolerations)
	assert.EqualValues(t, 1<<30, container.Resources.Limits.Memory().Value())
	assert.EqualValues(t, 400<<20, container.Resources.Requests.Memory().Value(), "a patch leaves the rest alone")
	assert.Equal(t, "proxy", environment(container)["HTTPS_PROXY"].Value)
	assert.Contains(t, environment(container), "K8S_NODE_NAME")
	assert.Equal(t, "--config=/etc/otelcol-profiles/values.yaml", container.Args[len(container.Args)-1])
	assert.Contains(t, find[*corev1.ConfigMap](t, m, "otelcol-profiles-agent").Data["values.yaml"], "limit_percentage: 70")
	assert.Equal(t, map[string]string{
		"BACKEND_ENDPOINT": "otelcol-profiles-gateway:4317", "BACKEND_INSECURE": "true", "BACKEND_COMPRESSION": "zstd",
		"K8S_CLUSTER_NAME": "east", "SCRAPE_INTERVAL": "30s", "SAMPLES_PER_SECOND": "49",
	}, find[*corev1.ConfigMap](t, m, "otelcol-profiles-agent-env").Data)

	gateway := find[*appsv1.StatefulSet](t, m, "otelcol-profiles-gateway")
	claim := gateway.Spec.VolumeClaimTemplates[0].Spec
	assert.EqualValues(t, 9<<30, claim.Resources.Requests.Storage().Value())
	assert.Equal(t, "fast", *claim.StorageClassName)
	assert.Equal(t, map[string]string{"BACKEND_ENDPOINT": "pyroscope:4317", "BACKEND_INSECURE": "true",
		"BACKEND_COMPRESSION": "zstd"}, find[*corev1.ConfigMap](t, m, "otelcol-profiles-gateway-env").Data)

	for _, object := range m {
		accessor, err := meta.Accessor(object)
		require.NoError(t, err)
		assert.Contains(t, []string{"", "monitoring"}, accessor.GetNamespace())
	}
	find[*corev1.Namespace](t, m, "monitoring")
	inside, problem := h.template(t, "otelcol-profiles", `{}`)
	require.Empty(t, problem)
	require.Empty(t, all[*corev1.Namespace](inside), "a release cannot make the namespace that it is in")

	// The store has half of the volume, or what the variable says. Helm reads numbers as floats.
	for page, maxBytes := range map[string]string{
		`{"storage": {"size": "40Gi"}}`:                                          "21474836480",
		`{"storage": {"size": "500M"}}`:                                          "250000000",
		`{"storage": {"size": "40Gi"}, "env": {"STORE_MAX_BYTES": 30000000000}}`: "30000000000",
	} {
		m := h.mustTemplate(t, `{"mode": "page", "page": `+page+`}`)
		assert.Equal(t, map[string]string{"STORE_MAX_BYTES": maxBytes},
			find[*corev1.ConfigMap](t, m, "otelcol-profiles-page-env").Data)
	}

	// A changed configuration rolls out, to the pods that have it.
	before, after := h.mustTemplate(t, `{"mode": "gateway"}`),
		h.mustTemplate(t, `{"mode": "gateway", "clusterName": "west"}`)
	for _, w := range before.workloads() {
		annotations := after.selected(t, w.selector).template.Annotations
		require.Equal(t, w.kind == "DaemonSet", w.template.Annotations["checksum/config"] != annotations["checksum/config"],
			w.name)
	}

	for values, want := range map[string]string{
		`{"mode": "gatewy"}`:                      "/mode",
		`{"bakend": {}}`:                          "bakend",
		`{"backend": {"endpoint": "https://b"}}`:  "/backend/endpoint",
		`{"gateway": {"minReplicas": 0}}`:         "/gateway/minReplicas",
		`{"agent": {"env": {"lower": "x"}}}`:      "lower",
		`{"page": {"storage": {"size": "much"}}}`: "/page/storage/size",
	} {
		_, problem := h.template(t, "default", values)
		require.Contains(t, problem, want)
	}
}

func (h helm) mustTemplate(t *testing.T, values string) manifest {
	t.Helper()
	m, problem := h.template(t, "default", values)
	require.NotEmpty(t, m, problem)
	return m
}

// requireSame compares objects one by one, so that a failure shows the one that differs.
func requireSame(t *testing.T, kustomize, helm manifest) {
	t.Helper()
	want, got := neutral(t, kustomize), neutral(t, helm)
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for name := range want {
		require.Equal(t, want[name], got[name], name)
	}
}

// neutral returns the objects by kind and name, without what kustomize and Helm do differently.
func neutral(t *testing.T, m manifest) map[string]any {
	t.Helper()
	configMap := regexp.MustCompile(`"(otelcol-profiles-(?:agent|gateway|page|ports)(?:-env)?)-[a-z0-9]{10}"`)
	found := map[string]any{}
	for _, object := range m {
		text, err := json.Marshal(object)
		require.NoError(t, err)
		var content map[string]any
		require.NoError(t, json.Unmarshal(configMap.ReplaceAll(text, []byte(`"$1"`)), &content))
		metadata := content["metadata"].(map[string]any)
		found[kindOf(object)+" "+metadata["name"].(string)] = content
		without(metadata, "helm.sh/resource-policy")
		if spec, is := content["spec"].(map[string]any); is {
			if template, is := spec["template"].(map[string]any); is {
				without(template["metadata"].(map[string]any), "checksum/config")
			}
		}
	}
	require.Len(t, found, len(m))
	return found
}

func kindOf(object runtime.Object) string { return object.GetObjectKind().GroupVersionKind().Kind }

// without removes an annotation.
func without(metadata map[string]any, annotation string) {
	annotations, _ := metadata["annotations"].(map[string]any)
	delete(annotations, annotation)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
}
