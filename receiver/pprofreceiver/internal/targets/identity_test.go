// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// attributesOf is the resource of a target that was discovered with these labels.
func attributesOf(t *testing.T, pairs ...string) map[string]any {
	t.Helper()
	targets, report := mustLoad(t, onlyMemory).group(found(append([]string{"__address__", "10.0.0.1:6060"}, pairs...)),
		newMemo())
	require.Len(t, targets, 1, report.Examples)
	return targets[0].Resource.AsRaw()
}

// Each step has all that the later ones have, so the order is seen.
func TestServiceNameOrder(t *testing.T) {
	steps := []struct{ want, label, value string }{
		{"j", "", ""},
		{"by-job", "job", "by-job"},
		{"by-container", "__meta_kubernetes_pod_container_name", "by-container"},
		{"by-workload", "__meta_kubernetes_pod_controller_name", "by-workload"},
		{"by-k8s-app", "__meta_kubernetes_pod_label_k8s_app", "by-k8s-app"},
		{"by-app", "__meta_kubernetes_pod_label_app", "by-app"},
		{"by-public-app", "app", "by-public-app"},
		{"by-app-name", "__meta_kubernetes_pod_label_app_kubernetes_io_name", "by-app-name"},
		{"by-public-app-name", "app_kubernetes_io_name", "by-public-app-name"},
		{"by-pyroscope", "__meta_kubernetes_pod_annotation_pyroscope_io_service_name", "by-pyroscope"},
		{"by-annotation", "__meta_kubernetes_pod_annotation_resource_opentelemetry_io_service_name", "by-annotation"},
		{"by-label", "service_name", "by-label"},
		{"by-attribute", "service.name", "by-attribute"},
	}
	var labels []string
	for _, step := range steps {
		if step.label != "" {
			labels = append(labels, step.label, step.value)
		}
		assert.Equal(t, step.want, attributesOf(t, labels...)["service.name"])
	}
}

func TestServiceAttributes(t *testing.T) {
	const annotation = "__meta_kubernetes_pod_annotation_resource_opentelemetry_io_service_"
	podOf := []string{"__meta_kubernetes_namespace", "ns", "__meta_kubernetes_pod_name", "p",
		"__meta_kubernetes_pod_container_name", "c"}
	and := func(pairs ...string) []string { return append(append([]string(nil), podOf...), pairs...) }
	for name, tc := range map[string]struct {
		labels []string
		key    string
		want   any
	}{
		"namespace":           {podOf, "service.namespace", "ns"},
		"annotated namespace": {and(annotation+"namespace", "a"), "service.namespace", "a"},
		"labelled namespace": {and(annotation+"namespace", "a", "service_namespace", "l"), "service.namespace",
			"l"},
		"no namespace": {nil, "service.namespace", nil},
		"version": {and("__meta_kubernetes_pod_label_app_kubernetes_io_version", "v"), "service.version",
			"v"},
		"annotated version": {and("__meta_kubernetes_pod_label_app_kubernetes_io_version", "v",
			annotation+"version", "a"), "service.version", "a"},
		"labelled version":        {and(annotation+"version", "a", "service_version", "l"), "service.version", "l"},
		"instance":                {nil, "service.instance.id", "10.0.0.1:6060"},
		"instance by label":       {and("instance", "i"), "service.instance.id", "i"},
		"instance of a container": {podOf, "service.instance.id", "ns.p.c"},
		"instance of a pod":       {podOf[:4], "service.instance.id", "ns.p"},
		"annotated instance":      {and("instance", "i", annotation+"instance_id", "a"), "service.instance.id", "a"},
		"labelled instance": {and(annotation+"instance_id", "a", "service_instance_id", "l"),
			"service.instance.id", "l"},
		"address":                      {nil, "server.address", "10.0.0.1"},
		"address of IPv6":              {[]string{"__address__", "[fd00::1]:1"}, "server.address", "fd00::1"},
		"port":                         {nil, "server.port", int64(6060)},
		"port by scheme":               {[]string{"__address__", "h", "__scheme__", "https"}, "server.port", int64(443)},
		"other port by scheme":         {[]string{"__address__", "h"}, "server.port", int64(80)},
		"any label":                    {[]string{"team", "shop"}, "team", "shop"},
		"an attribute that is derived": {and("k8s.pod.name", "other"), "k8s.pod.name", "other"},
		"node of the node role":        {[]string{"__meta_kubernetes_node_name", "n"}, "k8s.node.name", "n"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, attributesOf(t, tc.labels...)[tc.key])
		})
	}
}

func TestWorkloads(t *testing.T) {
	const controller = "__meta_kubernetes_pod_controller_"
	type attributes = map[string]any
	for name, tc := range map[string]struct {
		kind, name string
		labels     []string
		service    string
		want       attributes
	}{
		"deployment": {"ReplicaSet", "cart-7d9c", []string{"__meta_kubernetes_pod_label_pod_template_hash", "7d9c"},
			"cart", attributes{"k8s.deployment.name": "cart", "k8s.replicaset.name": "cart-7d9c"}},
		"deployment by API": {"ReplicaSet", "cart-7d9c", []string{"__meta_kubernetes_pod_deployment_name", "basket"},
			"basket", attributes{"k8s.deployment.name": "basket", "k8s.replicaset.name": "cart-7d9c"}},
		"replica set alone": {"ReplicaSet", "cart-7d9c", nil, "cart-7d9c", attributes{"k8s.replicaset.name": "cart-7d9c"}},
		"rollout": {"ReplicaSet", "cart-7d9c",
			[]string{"__meta_kubernetes_pod_label_rollouts_pod_template_hash", "7d9c"}, "cart",
			attributes{"k8s.replicaset.name": "cart-7d9c"}},
		"stateful set": {"StatefulSet", "db", nil, "db", attributes{"k8s.statefulset.name": "db"}},
		"daemon set":   {"DaemonSet", "agent", nil, "agent", attributes{"k8s.daemonset.name": "agent"}},
		"job":          {"Job", "import", nil, "import", attributes{"k8s.job.name": "import"}},
		"cron job": {"Job", "nightly-29384756", nil, "nightly",
			attributes{"k8s.job.name": "nightly-29384756", "k8s.cronjob.name": "nightly"}},
		"cron job by API": {"Job", "odd", []string{"__meta_kubernetes_pod_cronjob_name", "nightly"}, "nightly",
			attributes{"k8s.job.name": "odd", "k8s.cronjob.name": "nightly"}},
		"job with a number": {"Job", "import-42", nil, "import-42", attributes{"k8s.job.name": "import-42"}},
		"static pod": {"Node", "node-1", []string{"__meta_kubernetes_pod_container_name", "etcd"}, "etcd",
			attributes{"k8s.container.name": "etcd"}},
		"of somebody's making": {"GameServer", "g", nil, "g", attributes{}},
		"none": {"", "", []string{"__meta_kubernetes_pod_container_name", "c"}, "c",
			attributes{"k8s.container.name": "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := attributesOf(t, append([]string{controller + "kind", tc.kind, controller + "name", tc.name}, tc.labels...)...)
			assert.Equal(t, tc.service, all["service.name"])
			for _, known := range []string{"service.name", "service.instance.id", "server.address", "server.port"} {
				delete(all, known)
			}
			assert.Equal(t, tc.want, all)
		})
	}
}

func TestImages(t *testing.T) {
	for image, want := range map[string][]any{
		"cart":                                  {"cart", nil},
		"cart:1.2":                              {"cart", []any{"1.2"}},
		"registry:5000/shop/cart":               {"registry:5000/shop/cart", nil},
		"registry:5000/shop/cart:1.2@sha256:ab": {"registry:5000/shop/cart", []any{"1.2"}},
		"shop/cart@sha256:ab":                   {"shop/cart", nil},
	} {
		all := attributesOf(t, "__meta_kubernetes_pod_container_image", image)
		assert.Equal(t, want[0], all["container.image.name"], image)
		assert.Equal(t, want[1], all["container.image.tags"], image)
	}
	assert.Equal(t, "ab", attributesOf(t, "__meta_kubernetes_pod_container_id", "containerd://ab")["container.id"])
}
