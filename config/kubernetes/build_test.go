// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes has the tests of the manifests in this folder. They build the manifests as kubectl does, decode
// them strictly into Kubernetes' own types, and check what the API server does not.
package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const namespace = "otelcol-profiles"

// strict refuses unknown fields and duplicate keys.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// manifest is what one `kubectl apply -k` sends.
type manifest []runtime.Object

// overlays are what the tests build: those that are shipped, and others with every component.
var overlays = map[string]struct {
	folder     string
	components []string
}{
	"agent":          {folder: "overlays/agent"},
	"gateway":        {folder: "overlays/gateway"},
	"page":           {folder: "overlays/page"},
	"agent, token":   {folder: "overlays/agent", components: []string{"components/backend-token"}},
	"gateway, token": {folder: "overlays/gateway", components: []string{"components/backend-token"}},
	"agent, ports":   {folder: "overlays/agent", components: []string{"components/host-ports"}},
	"gateway, all": {folder: "overlays/gateway",
		components: []string{"components/host-ports", "components/backend-token"}},
	"gateway, volumes": {folder: "overlays/gateway",
		components: []string{"components/gateway-volumes", "components/backend-token"}},
	"agent, secure": {folder: "overlays/agent", components: []string{"components/secure-ports"}},
	"gateway, secure": {folder: "overlays/gateway",
		components: []string{"components/gateway-volumes", "components/secure-ports"}},
	"page, secure":    {folder: "overlays/page", components: []string{"components/secure-ports"}},
	"agent, ebpf":     {folder: "overlays/agent", components: []string{"components/ebpf"}},
	"gateway, ebpf":   {folder: "overlays/gateway", components: []string{"components/host-ports", "components/ebpf"}},
	"page, ebpf":      {folder: "overlays/page", components: []string{"components/host-ports", "components/ebpf"}},
	"own, from parts": {folder: "base", components: []string{"components/gateway", "components/host-ports"}},
}

// forEach runs a test for every overlay.
func forEach(t *testing.T, test func(*testing.T, manifest)) {
	for name, o := range overlays {
		t.Run(name, func(t *testing.T) { test(t, build(t, o.folder, o.components...)) })
	}
}

// builds caches the results of build by folder and components. Nobody changes them.
var builds = map[string]manifest{}

// build builds a folder, with components as a user adds them.
func build(t *testing.T, folder string, components ...string) manifest {
	t.Helper()
	key := fmt.Sprint(folder, components)
	if builds[key] == nil {
		builds[key] = buildAnew(t, folder, components)
	}
	return builds[key]
}

func buildAnew(t *testing.T, folder string, components []string) manifest {
	t.Helper()
	fs := filesys.MakeFsOnDisk()
	if len(components) > 0 {
		own := t.TempDir()
		text := fmt.Sprintf("namespace: %s\nresources: [%s]\ncomponents: [", namespace, relative(t, own, folder))
		for _, component := range components {
			text += relative(t, own, component) + ", "
		}
		text += "]\n"
		if folder == "base" { // what an overlay adds
			text += "configMapGenerator: [{name: otelcol-profiles-gateway-env, literals: [BACKEND_ENDPOINT=backend:4317]}]\n"
		}
		require.NoError(t, fs.WriteFile(filepath.Join(own, "kustomization.yaml"), []byte(text)))
		folder = own
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fs, folder)
	require.NoError(t, err)
	var m manifest
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		require.NoError(t, err)
		object, _, err := strict.Decode(text, nil, nil)
		require.NoError(t, err, "%s", text)
		m = append(m, object)
	}
	return m
}

func relative(t *testing.T, from, to string) string {
	t.Helper()
	to, err := filepath.Abs(to)
	require.NoError(t, err)
	to, err = filepath.Rel(from, to)
	require.NoError(t, err)
	return to
}

// find returns the object of a type with a name.
func find[T runtime.Object](t *testing.T, m manifest, name string) T {
	t.Helper()
	for _, object := range all[T](m) {
		accessor, err := meta.Accessor(object)
		require.NoError(t, err)
		if accessor.GetName() == name {
			return object
		}
	}
	var none T
	t.Fatalf("there is no %T %q", none, name)
	return none
}

// all returns the objects of a type.
func all[T runtime.Object](m manifest) []T {
	var found []T
	for _, object := range m {
		if o, is := object.(T); is {
			found = append(found, o)
		}
	}
	return found
}

// workload is an object that makes pods.
type workload struct {
	kind, name string
	template   corev1.PodTemplateSpec
	selector   map[string]string
}

func (w workload) container() corev1.Container { return w.template.Spec.Containers[0] }

func (m manifest) workloads() (found []workload) {
	for _, d := range all[*appsv1.DaemonSet](m) {
		found = append(found, workload{"DaemonSet", d.Name, d.Spec.Template, d.Spec.Selector.MatchLabels})
	}
	for _, d := range all[*appsv1.Deployment](m) {
		found = append(found, workload{"Deployment", d.Name, d.Spec.Template, d.Spec.Selector.MatchLabels})
	}
	for _, s := range all[*appsv1.StatefulSet](m) {
		found = append(found, workload{"StatefulSet", s.Name, s.Spec.Template, s.Spec.Selector.MatchLabels})
	}
	return found
}

// TestComments removes the # before the components in the overlays, as a user does.
func TestComments(t *testing.T) {
	for overlay, components := range map[string]int{"agent": 4, "gateway": 5, "page": 3} {
		tree := t.TempDir()
		require.NoError(t, os.CopyFS(tree, os.DirFS(".")))
		folder := filepath.Join(tree, "overlays", overlay)
		file := filepath.Join(folder, "kustomization.yaml")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, components, strings.Count(string(text), "  # - "))
		require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "  # - ", "  - ")), 0o600))
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
		require.NoError(t, err)
		yaml, err := built.AsYaml()
		require.NoError(t, err)
		require.Equal(t, overlay != "page", strings.Contains(string(yaml), "key: token"))
		require.Contains(t, string(yaml), "hostPort: 4317")
		require.Contains(t, string(yaml), "--config=/etc/otelcol-profiles-ports/agent.yaml")
		require.Contains(t, string(yaml), "hostPID: true")
	}
}

// TestStrict checks that every object is of a known type without unknown fields, and that decoding is strict.
func TestStrict(t *testing.T) {
	forEach(t, func(t *testing.T, m manifest) { require.NotEmpty(t, m) })
	for fault, spec := range map[string]string{
		"unknown field":    "internalTrafficPolice: Local",
		"already set":      "{type: ClusterIP, type: NodePort}",
		"cannot unmarshal": "ports: 4317",
	} {
		_, _, err := strict.Decode([]byte("apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: "+
			strings.ReplaceAll("\n"+spec, "\n", "\n  ")), nil, nil)
		require.ErrorContains(t, err, fault)
	}
	_, _, err := strict.Decode([]byte("apiVersion: v1\nkind: Servce\n"), nil, nil)
	require.ErrorContains(t, err, `no kind "Servce"`)
}
