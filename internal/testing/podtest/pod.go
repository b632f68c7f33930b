// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package podtest gives a process on this machine what the pods of config/kubernetes have: arguments, files, variables
// and limits.
package podtest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	mib = 1 << 20
	// mounted begins the paths of the folders of configurations and Secrets in a pod.
	mounted = "/etc/otelcol-profiles"
	// Manifests is the folder of the manifests, in a checkout.
	Manifests = "config/kubernetes"
)

// Pod is what the container of a pod has.
type Pod struct {
	// Args and Env are those of the process. Env lacks QUEUE_DIRECTORY, STORE_DIRECTORY, and where to listen.
	Args, Env []string
	// LimitMiB and RequestMiB are the memory of the container, and what it requests.
	LimitMiB, RequestMiB int
}

// New returns a pod of a workload of an overlay: its agent, gateway or page. Its Secrets have the given files. The
// cluster differs from a real one: its API server has no pods and needs no token.
func New(t *testing.T, overlay, workload string, secret map[string]string) (p Pod) {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), overlay)
	require.NoError(t, err)
	template := object[struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}](t, built, "DaemonSet Deployment StatefulSet", workload).Spec.Template
	container := template.Spec.Containers[0]
	limits, requests := container.Resources.Limits, container.Resources.Requests
	p.LimitMiB = int(limits.Memory().Value() / mib)
	p.RequestMiB = int(requests.Memory().Value() / mib)

	root := t.TempDir()
	volumes := map[string]corev1.Volume{}
	for _, volume := range template.Spec.Volumes {
		volumes[volume.Name] = volume
	}
	for _, mount := range container.VolumeMounts {
		for name, text := range content(t, built, volumes[mount.Name], secret) {
			path := filepath.Join(root, mount.MountPath, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, []byte(p.adapt(t, root, text)), 0o600))
		}
	}
	for _, arg := range container.Args {
		p.Args = append(p.Args, strings.ReplaceAll(arg, mounted, root+mounted))
	}
	kubeconfig := filepath.Join(root, "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: %q}}]}`, startAPIServer(t)), 0o600))
	p.Env = []string{"KUBECONFIG=" + kubeconfig, fmt.Sprint("GOMEMLIMIT=", requests.Memory().Value())}
	for _, from := range container.EnvFrom {
		for name, value := range object[corev1.ConfigMap](t, built, "ConfigMap", from.ConfigMapRef.Name).Data {
			p.Env = append(p.Env, name+"="+value)
		}
	}
	for _, variable := range container.Env {
		switch from := variable.ValueFrom; {
		case variable.Name == "GOMAXPROCS":
			p.Env = append(p.Env, fmt.Sprint("GOMAXPROCS=", limits.Cpu().Value()))
		case from != nil && from.FieldRef != nil:
			p.Env = append(p.Env, variable.Name+"=this")
		}
	}
	return p
}

// content returns the files of a volume.
func content(t *testing.T, built resmap.ResMap, volume corev1.Volume, secret map[string]string) map[string]string {
	t.Helper()
	files := map[string]string{}
	var sources []corev1.VolumeProjection
	switch {
	case volume.ConfigMap != nil:
		sources = []corev1.VolumeProjection{
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: volume.ConfigMap.LocalObjectReference}}}
	case volume.Projected != nil:
		sources = volume.Projected.Sources
	}
	for _, source := range sources {
		if source.ConfigMap != nil {
			maps.Copy(files, object[corev1.ConfigMap](t, built, "ConfigMap", source.ConfigMap.Name).Data)
		}
		if source.Secret != nil {
			maps.Copy(files, secret)
		}
	}
	return files
}

var percentage = regexp.MustCompile(`\b(?:spike_)?limit_percentage: \d+`)

// adapt changes what a configuration says about the machine: paths, the API server's address, and the memory, of which
// percentages are of the container's.
func (p Pod) adapt(t *testing.T, root, text string) string {
	t.Helper()
	text = strings.ReplaceAll(text, mounted, root+mounted)
	text = strings.ReplaceAll(text, "auth_type: serviceAccount", "auth_type: kubeConfig")
	text = strings.ReplaceAll(text, "- role: pod\n              selectors:",
		"- role: pod\n              kubeconfig_file: ${env:KUBECONFIG}\n              selectors:")
	text = percentage.ReplaceAllStringFunc(text, func(line string) string {
		key, value, _ := strings.Cut(line, "_percentage: ")
		percent, err := strconv.Atoi(value)
		require.NoError(t, err)
		return fmt.Sprintf("%s_mib: %d", key, percent*p.LimitMiB/100)
	})
	require.NotContains(t, text, "serviceAccount")
	return text
}

// object returns an object of one of the kinds.
func object[T any](t *testing.T, built resmap.ResMap, kinds, name string) (o T) {
	t.Helper()
	for _, resource := range built.Resources() {
		if slices.Contains(strings.Fields(kinds), resource.GetKind()) && resource.GetName() == name {
			text, err := resource.AsYAML()
			require.NoError(t, err)
			require.NoError(t, yaml.Unmarshal(text, &o))
			return o
		}
	}
	t.Fatalf("there is no %s %q", kinds, name)
	return o
}
