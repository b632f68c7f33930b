// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// shippedRules are the relabel rules for annotated pods, as the collector reads them: `$$` is its way to write `$`.
func shippedRules(t testing.TB) string {
	t.Helper()
	text := profiletest.FileBytes(t, "../../testdata/kubernetes-relabel.yaml")
	var rules []any
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "$$", "$")), &rules))
	written, err := yaml.Marshal(map[string]any{"relabel_configs": rules})
	require.NoError(t, err)
	return string(written)
}

// annotatedJob is a job for annotated pods whose discovery is replaced by the test.
func annotatedJob(t testing.TB) *Config {
	t.Helper()
	return mustLoad(t, `
job_name: pods
static_configs: [{targets: [replaced]}]
profiles: {fgprof: {enabled: true}, custom: {mine: {path: /mine}}}
`+shippedRules(t))
}

// The file can be read where rules stand: the collector makes `$` of `$$` in it.
func TestShippedRulesInACollector(t *testing.T) {
	text := profiletest.FileBytes(t, "../../testdata/kubernetes-relabel.yaml")
	cfg := &Config{}
	require.NoError(t, cfg.Unmarshal(resolve(t, map[string]string{
		"test:config": "job_name: a\nrelabel_configs: ${test:rules}" + someDiscovery,
		"test:rules":  string(text),
	})))
	want := mustLoad(t, "job_name: a\n"+shippedRules(t)+someDiscovery)
	assert.Equal(t, want.String(), cfg.String())
	assert.Len(t, cfg.RelabelConfigs, len(want.RelabelConfigs))
}

// container is what discovery knows of one port of a container.
func container(name, address, port, portName string) model.LabelSet {
	return model.LabelSet{
		"__address__":                                   model.LabelValue(address),
		"__meta_kubernetes_pod_container_name":          model.LabelValue(name),
		"__meta_kubernetes_pod_container_init":          "false",
		"__meta_kubernetes_pod_container_port_number":   model.LabelValue(port),
		"__meta_kubernetes_pod_container_port_name":     model.LabelValue(portName),
		"__meta_kubernetes_pod_container_port_protocol": "TCP",
		"__meta_kubernetes_pod_container_id":            "containerd://" + model.LabelValue(name) + "-id",
		"__meta_kubernetes_pod_container_image":         "registry:5000/team/" + model.LabelValue(name) + ":1.2@sha256:00",
	}
}

// pod is what discovery knows of a pod. Its annotations are pairs.
func pod(ip string, annotations ...string) model.LabelSet {
	labels := model.LabelSet{
		"__meta_kubernetes_namespace":           "shop",
		"__meta_kubernetes_pod_name":            "cart-7d9c-x1",
		"__meta_kubernetes_pod_uid":             "0000-1111",
		"__meta_kubernetes_pod_ip":              model.LabelValue(ip),
		"__meta_kubernetes_pod_node_name":       "node-1",
		"__meta_kubernetes_pod_phase":           "Running",
		"__meta_kubernetes_pod_controller_kind": "StatefulSet",
		"__meta_kubernetes_pod_controller_name": "cart",
	}
	for i := 0; i < len(annotations); i += 2 {
		key := strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(annotations[i])
		labels[model.LabelName("__meta_kubernetes_pod_annotation_"+key)] = model.LabelValue(annotations[i+1])
	}
	return labels
}

func with(base model.LabelSet, pairs ...string) model.LabelSet {
	changed := maps.Clone(base)
	for i := 0; i < len(pairs); i += 2 {
		changed[model.LabelName(pairs[i])] = model.LabelValue(pairs[i+1])
	}
	return changed
}

func TestShippedRules(t *testing.T) {
	const grafana = "profiles.grafana.com/"
	one := []model.LabelSet{container("app", "10.0.0.1:8080", "8080", "http")}
	two := append(one, container("app", "10.0.0.1:6060", "6060", "pprof"))
	all := func(prefix string) []string {
		return []string{
			"process_cpu " + prefix + "/debug/pprof/profile?seconds=14", "memory " + prefix + "/debug/pprof/allocs",
			"goroutine " + prefix + "/debug/pprof/goroutine", "block " + prefix + "/debug/pprof/block",
			"mutex " + prefix + "/debug/pprof/mutex",
		}
	}
	for name, tc := range map[string]struct {
		pod        model.LabelSet
		containers []model.LabelSet
		want       []string
	}{
		"no annotation":      {pod("10.0.0.1"), two, nil},
		"another annotation": {pod("10.0.0.1", "prometheus.io/scrape", "true"), two, nil},
		"everything":         {pod("10.0.0.1", "pprof.io/scrape", "true"), one, all("http://10.0.0.1:8080")},
		"refused":            {pod("10.0.0.1", "pprof.io/scrape", "false"), one, nil},
		"a port": {pod("10.0.0.1", "pprof.io/scrape", "true", "pprof.io/port", "6061"), two,
			all("http://10.0.0.1:6061")},
		"a port's name": {pod("10.0.0.1", "pprof.io/scrape", "true", "pprof.io/port_name", "pprof"), two,
			all("http://10.0.0.1:6060")},
		"a name of no port": {pod("10.0.0.1", "pprof.io/scrape", "true", "pprof.io/port_name", "nope"), two, nil},
		"scheme and path": {
			pod("10.0.0.1", "pprof.io/scrape", "true", "pprof.io/scheme", "https", "pprof.io/path", "/internal/"), one,
			all("https://10.0.0.1:8080/internal"),
		},
		"every port": {
			pod("10.0.0.1", grafana+"mutex.scrape", "true"), two,
			[]string{"mutex http://10.0.0.1:6060/debug/pprof/mutex", "mutex http://10.0.0.1:8080/debug/pprof/mutex"},
		},
		"single kinds": {
			pod("10.0.0.1", grafana+"cpu.scrape", "true", grafana+"cpu.port_name", "pprof", grafana+"fgprof.scrape", "true",
				grafana+"fgprof.port", "9999", grafana+"fgprof.path", "/fgprof", grafana+"fgprof.scheme", "https",
				grafana+"goroutine.scrape", "false", grafana+"block.port", "1"), two,
			[]string{"process_cpu http://10.0.0.1:6060/debug/pprof/profile?seconds=14",
				"fgprof https://10.0.0.1:9999/fgprof?seconds=14"},
		},
		"each kind": {
			pod("10.0.0.1", grafana+"cpu.scrape", "true", grafana+"memory.scrape", "true", grafana+"goroutine.scrape", "true",
				grafana+"block.scrape", "true", grafana+"mutex.scrape", "true", grafana+"fgprof.scrape", "true",
				grafana+"memory.path", "/m", grafana+"goroutine.path", "/g", grafana+"block.path", "/b", grafana+"mutex.path",
				"/x"), one,
			[]string{
				"process_cpu http://10.0.0.1:8080/debug/pprof/profile?seconds=14", "memory http://10.0.0.1:8080/m",
				"goroutine http://10.0.0.1:8080/g",
				"block http://10.0.0.1:8080/b", "mutex http://10.0.0.1:8080/x",
				"fgprof http://10.0.0.1:8080/debug/fgprof?seconds=14",
			},
		},
		"both families": {
			pod("10.0.0.1", "pprof.io/scrape", "true", "pprof.io/port", "6060", "pprof.io/path", "/p", grafana+"memory.port",
				"7070",
				grafana+"memory.path", "/heap", grafana+"block.scrape", "false", grafana+"mutex.scrape", "false",
				grafana+"goroutine.scrape", "false"), one,
			[]string{"process_cpu http://10.0.0.1:6060/p/debug/pprof/profile?seconds=14", "memory http://10.0.0.1:7070/heap"},
		},
		"what only looks like a list": {
			pod("10.0.0.1", grafana+"cpu.scrape", "true", grafana+"cpu.path", "/a;b", grafana+"memory.scrape", "true;true;true",
				grafana+"goroutine.scrape", "true", grafana+"goroutine.path", ";x", grafana+"goroutine.port_name", ";pprof",
				grafana+"block.scrape", "true", grafana+"block.path", "/b\n;c", "pprof.io/port", "8080"), one,
			[]string{
				"process_cpu http://10.0.0.1:8080/a;b?seconds=14", "goroutine http://10.0.0.1:8080/debug/pprof/goroutine",
				"block http://10.0.0.1:8080/b%0A;c",
			},
		},
		"memory beside it": {
			pod("10.0.0.1", grafana+"cpu.scrape", "true", grafana+"cpu.path", "/a;b", grafana+"memory.scrape", "true"), one,
			[]string{"process_cpu http://10.0.0.1:8080/a;b?seconds=14", "memory http://10.0.0.1:8080/debug/pprof/allocs"},
		},
		"no declared port": {pod("10.0.0.1", "pprof.io/scrape", "true"),
			[]model.LabelSet{container("app", "10.0.0.1", "", "")}, nil},
		"a port only annotated": {pod("10.0.0.1", "pprof.io/scrape", "true", "pprof.io/port", "6060"),
			[]model.LabelSet{container("app", "10.0.0.1", "", "")}, all("http://10.0.0.1:6060")},
		"IPv6": {pod("fd00::1", "pprof.io/scrape", "true", "pprof.io/port", "6060"),
			[]model.LabelSet{container("app", "fd00::1", "", "")}, all("http://[fd00::1]:6060")},
		"a pod that is over": {with(pod("10.0.0.1", "pprof.io/scrape", "true"), "__meta_kubernetes_pod_phase",
			"Succeeded"), one, nil},
		"a container that is": {pod("10.0.0.1", "pprof.io/scrape", "true", "pprof.io/port", "1"),
			[]model.LabelSet{with(container("i", "10.0.0.1", "", ""), "__meta_kubernetes_pod_container_init", "true")}, nil},
		"a sidecar": {pod("10.0.0.1", "pprof.io/scrape", "true"),
			[]model.LabelSet{with(one[0], "__meta_kubernetes_pod_container_init", "true")}, all("http://10.0.0.1:8080")},
		"a UDP port": {pod("10.0.0.1", "pprof.io/scrape", "true"),
			[]model.LabelSet{with(one[0], "__meta_kubernetes_pod_container_port_protocol", "UDP")}, nil},
		"a port that is no port": {pod("10.0.0.1", "pprof.io/scrape", "true", "pprof.io/port", "http"), one, nil},
	} {
		t.Run(name, func(t *testing.T) {
			targets, report := annotatedJob(t).
				group([]*targetgroup.Group{{Source: "pod/shop/cart", Targets: tc.containers, Labels: tc.pod}}, newMemo())
			assert.Equal(t, tc.want, urls(Update{Targets: targets}), report.Examples)
			assert.Equal(t, len(tc.containers), report.Discovered)
			if name == "a port that is no port" {
				assert.Equal(t, 5, report.Dropped[DropInvalid])
				assert.Contains(t, report.Examples[0].Detail, `the port must be a number from 1 to 65535`)
			}
		})
	}
}

// Kinds on two ports make two targets of one identity but for the port; containers that lead to one address make one.
func TestShippedRulesIdentity(t *testing.T) {
	job := annotatedJob(t)
	group := func(annotations ...string) []*Target {
		targets, _ := job.group([]*targetgroup.Group{{Source: "p", Labels: pod("10.0.0.1", annotations...),
			Targets: []model.LabelSet{
				container("proxy", "10.0.0.1:15000", "15000", "admin"), container("app", "10.0.0.1:6060", "6060", "pprof"),
			}}}, newMemo())
		return targets
	}
	want := map[string]any{
		"service.name": "cart", "service.namespace": "shop", "service.instance.id": "shop.cart-7d9c-x1.app",
		"server.address": "10.0.0.1", "server.port": int64(6060),
		"k8s.namespace.name": "shop", "k8s.pod.name": "cart-7d9c-x1", "k8s.pod.uid": "0000-1111", "k8s.pod.ip": "10.0.0.1",
		"k8s.node.name": "node-1", "k8s.container.name": "app", "k8s.statefulset.name": "cart",
		"container.image.name": "registry:5000/team/app", "container.image.tags": []any{"1.2"}, "container.id": "app-id",
	}
	t.Run("the port's container", func(t *testing.T) {
		targets := group("pprof.io/scrape", "true", "pprof.io/port", "6060")
		require.Len(t, targets, 1)
		assert.Equal(t, want, targets[0].Resource.AsRaw())
	})
	t.Run("nobody's port", func(t *testing.T) {
		targets := group("pprof.io/scrape", "true", "pprof.io/port", "7070")
		require.Len(t, targets, 1)
		unsure := maps.Clone(want)
		for _, key := range []string{"k8s.container.name", "container.image.name", "container.image.tags", "container.id"} {
			delete(unsure, key)
		}
		unsure["service.instance.id"], unsure["server.port"] = "shop.cart-7d9c-x1", int64(7070)
		assert.Equal(t, unsure, targets[0].Resource.AsRaw())
	})
	t.Run("two ports", func(t *testing.T) {
		targets := group("pprof.io/scrape", "true", "pprof.io/port", "6060", "profiles.grafana.com/memory.port", "15000")
		require.Len(t, targets, 2)
		assert.Len(t, targets[0].Endpoints, 1)
		assert.Len(t, targets[1].Endpoints, 4)
		assert.NotEqual(t, targets[0].Key, targets[1].Key)
		assert.Equal(t, "proxy", targets[0].Resource.AsRaw()["k8s.container.name"])
	})
}
