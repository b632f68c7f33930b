// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// shopHash is what a Deployment adds to the names of its ReplicaSet and pods.
	shopHash = "6c45f8d6f6"
	// scrapes is long enough for the first two scrapes of everything, at an interval of 15 s, on a busy machine.
	scrapes = 3 * time.Minute
)

// testKubernetesAgent runs the agent of a node, with applications on that node and on another one.
func testKubernetesAgent(t *testing.T, c *cluster) {
	shop := c.addApplication(t, application{
		name: "shop-" + shopHash + "-x2v7q", node: "node-a", ip: podIP(11), owner: "ReplicaSet/shop-" + shopHash,
		labels: map[string]string{"pod-template-hash": shopHash},
		annotations: map[string]string{
			"profiles.grafana.com/cpu.scrape": "true", "profiles.grafana.com/cpu.port_name": "debug",
			"profiles.grafana.com/memory.scrape": "true", "profiles.grafana.com/memory.port": "6060",
		},
	})
	runTarget(t, buildTarget(t), shop.Status.PodIP+":6060")
	asks := map[string]string{"pprof.io/scrape": "true", "pprof.io/port": "6060"}
	cart := application{
		name: "cart-0", node: "node-a", ip: podIP(12), owner: "StatefulSet/cart", annotations: asks,
		labels: map[string]string{"app.kubernetes.io/name": "cart-service"},
	}
	late := application{name: "late", node: "node-a", ip: podIP(13), annotations: asks}
	elsewhere := application{name: "elsewhere", node: "node-b", ip: podIP(14), annotations: asks}
	silent := application{name: "silent", node: "node-a", ip: podIP(15)} // without annotations; it pushes
	for _, a := range []application{cart, elsewhere, silent} {
		c.addApplication(t, a)
	}
	fakes := map[string]*fakeProgram{}
	for _, a := range []application{cart, late, elsewhere, silent} {
		fakes[a.name] = startFakeProgram(t, a.ip)
	}

	to := startBackend(t)
	pod := c.addAgentPod(t, "k9z4m", "node-a", podIP(1))
	requireLeastPrivilege(t, c, pod)
	agent := c.runPod(t, pod, map[string]string{
		"BACKEND_ENDPOINT": to.address, "BACKEND_INSECURE": "true", "K8S_CLUSTER_NAME": "test",
	})

	agent.waitForTargets(t, "cart-0", shop.Name)
	requirePushes(t, agent, to, "silent", silent.ip)
	require.Eventually(t, func() bool {
		got := to.types("shop")
		return got["cpu"] && got["alloc_space"] && got["inuse_space"]
	}, scrapes, 200*time.Millisecond, "of the kinds that the annotations name")
	require.False(t, to.types("shop")["goroutine"], "no annotation names it")
	require.Eventually(t, func() bool {
		return to.hasFunction("shop", "cpu", "main.Spin") && to.hasFunction("shop", "alloc_space", "main.Keep")
	}, scrapes, 200*time.Millisecond)
	requireShop(t, shop, to.service("shop"))
	require.Eventually(t, func() bool { return to.service("cart-service") != nil }, scrapes, 200*time.Millisecond)
	require.Equal(t, "cart", to.service("cart-service")["k8s.statefulset.name"])

	// A pod appears, the annotations of another pod change, and the new pod goes.
	c.addApplication(t, late)
	agent.waitForTargets(t, "cart-0", "late", shop.Name)
	require.Eventually(t, func() bool { return to.service("server") != nil }, scrapes, 200*time.Millisecond,
		"a pod without workload and labels is named after its container")
	pods := c.admin.CoreV1().Pods(demo)
	_, err := pods.Patch(t.Context(), "cart-0", types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"pprof.io/scrape": "false"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	agent.waitForTargets(t, "late", shop.Name)
	now := int64(0)
	require.NoError(t, pods.Delete(t.Context(), "late", metav1.DeleteOptions{GracePeriodSeconds: &now}))
	agent.waitForTargets(t, shop.Name)
	asked := map[string]int64{"cart-0": fakes["cart-0"].requests.Load(), "late": fakes["late"].requests.Load()}
	require.Eventually(t, func() bool { return to.service("otelcol-profiles") != nil }, scrapes, 200*time.Millisecond,
		"the agent's own profiles")
	require.Equal(t, pod.Name, to.service("otelcol-profiles")["k8s.pod.name"])
	time.Sleep(20 * time.Second) // more than an interval, so that another scrape would show
	for name, before := range asked {
		require.Positive(t, before, name)
		require.Equal(t, before, fakes[name].requests.Load(), "requests to %s after it has gone", name)
	}
	for _, name := range []string{"elsewhere", "silent"} {
		require.Zero(t, fakes[name].requests.Load(), "requests to %s", name)
	}

	agent.Terminate(t)
	agent.requireNoErrors(t)
	to.requireConformant(t)
	t.Logf("shop arrived as %v", to.service("shop"))
	t.Logf("services: %v; requests: %v", slices.Sorted(maps.Keys(to.services())), asked)
}

// requireShop checks the attributes of the pod that a Deployment made.
func requireShop(t *testing.T, pod *corev1.Pod, got map[string]any) {
	t.Helper()
	for key, want := range map[string]string{
		"service.name": "shop", "service.namespace": demo, "service.instance.id": demo + "." + pod.Name + ".server",
		"k8s.cluster.name": "test", "k8s.namespace.name": demo, "k8s.node.name": "node-a",
		"k8s.deployment.name": "shop", "k8s.replicaset.name": "shop-" + shopHash,
		"k8s.pod.name": pod.Name, "k8s.pod.uid": string(pod.UID), "k8s.pod.ip": pod.Status.PodIP,
		"k8s.container.name": "server", "container.image.name": "demo/server",
	} {
		require.Equal(t, want, got[key], key)
	}
	require.Contains(t, got, "k8s.pod.start_time", "only k8s_attributes adds it")
}

// requireLeastPrivilege checks what the agent's service account may and may not do.
func requireLeastPrivilege(t *testing.T, c *cluster, pod *corev1.Pod) {
	t.Helper()
	agent, err := kubernetes.NewForConfig(c.as(c.token(t, pod)))
	require.NoError(t, err)
	core, all := agent.CoreV1(), metav1.ListOptions{}
	pods, err := core.Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=node-a"})
	require.NoError(t, err)
	require.NotEmpty(t, pods.Items)
	for what, ask := range map[string]func(context.Context) error{
		"list secrets": func(ctx context.Context) error { _, err := core.Secrets(installed).List(ctx, all); return err },
		"list config maps": func(ctx context.Context) error {
			_, err := core.ConfigMaps(installed).List(ctx, all)
			return err
		},
		"list nodes":      func(ctx context.Context) error { _, err := core.Nodes().List(ctx, all); return err },
		"list namespaces": func(ctx context.Context) error { _, err := core.Namespaces().List(ctx, all); return err },
		"list services":   func(ctx context.Context) error { _, err := core.Services(demo).List(ctx, all); return err },
		"list replica sets": func(ctx context.Context) error {
			_, err := agent.AppsV1().ReplicaSets(demo).List(ctx, all)
			return err
		},
		"get a pod": func(ctx context.Context) error {
			_, err := core.Pods(demo).Get(ctx, "x", metav1.GetOptions{})
			return err
		},
		"delete a pod": func(ctx context.Context) error { return core.Pods(demo).Delete(ctx, "x", metav1.DeleteOptions{}) },
		"read a pod's log": func(ctx context.Context) error {
			return core.Pods(demo).GetLogs("x", &corev1.PodLogOptions{}).Do(ctx).Error()
		},
	} {
		require.True(t, apierrors.IsForbidden(ask(t.Context())), what)
	}
}
