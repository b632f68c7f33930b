// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podIP returns a loopback address for a pod. Each process has a range of its own.
func podIP(number int) string {
	return fmt.Sprintf("127.%d.%d.%d", 64+os.Getpid()>>8%64, os.Getpid()%256, number)
}

// addNamespace makes a namespace and, as the cluster's controllers do, its default service account.
func (c *cluster) addNamespace(t *testing.T, name string) {
	t.Helper()
	_, err := c.admin.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.admin.CoreV1().ServiceAccounts(name).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// addPod makes a pod that is on a node already, with the status that the kubelet sets when a pod runs.
func (c *cluster) addPod(t *testing.T, pod *corev1.Pod, ip string) *corev1.Pod {
	t.Helper()
	pods := c.admin.CoreV1().Pods(pod.Namespace)
	pod, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: "127.0.0.1", PodIP: ip,
		HostIPs: []corev1.HostIP{{IP: "127.0.0.1"}}, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	now := metav1.Now()
	pod.Status.StartTime = &now
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true,
			ContainerID: "containerd://" + strings.ReplaceAll(string(pod.UID), "-", "") + container.Name,
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	pod, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	require.NoError(t, err)
	return pod
}

// addAgentPod makes a pod of the agents' DaemonSet on a node.
func (c *cluster) addAgentPod(t *testing.T, suffix, node, ip string) *corev1.Pod {
	t.Helper()
	return c.addPod(t, podOf(c.agents(t).Spec.Template, "otelcol-profiles-agent-"+suffix, node), ip)
}

// agents returns the agents' DaemonSet.
func (c *cluster) agents(t *testing.T) *appsv1.DaemonSet {
	t.Helper()
	daemonSet, err := c.admin.AppsV1().DaemonSets(installed).Get(t.Context(), "otelcol-profiles-agent",
		metav1.GetOptions{})
	require.NoError(t, err)
	return daemonSet
}

// podOf returns a pod of a workload's template, as its controller and the scheduler make it.
func podOf(template corev1.PodTemplateSpec, name, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.Spec.NodeName = installed, name, node
	return pod
}

// application describes a pod that a user runs.
type application struct {
	name, node, ip      string
	labels, annotations map[string]string
	// owner is the workload's kind and name, for example ReplicaSet/shop-6c45f8d6f6.
	owner string
}

func (c *cluster) addApplication(t *testing.T, a application) *corev1.Pod {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: demo, Name: a.name, Labels: a.labels, Annotations: a.annotations}
	if kind, name, found := strings.Cut(a.owner, "/"); found {
		controller := true
		meta.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID("uid-of-" + name), Controller: &controller,
		}}
	}
	return c.addPod(t, &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		NodeName: a.node,
		Containers: []corev1.Container{{
			Name: "server", Image: "demo/server:1.2.3",
			Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}, {Name: "debug", ContainerPort: 6060}},
		}},
	}}, a.ip)
}

// fakeProgram serves captured profiles in place of a program, and counts requests.
type fakeProgram struct {
	payloads map[string][]byte
	requests atomic.Int64
}

func (f *fakeProgram) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.requests.Add(1)
	payload, found := f.payloads[r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(payload)
}

func startFakeProgram(t *testing.T, ip string) *fakeProgram {
	t.Helper()
	f := &fakeProgram{payloads: fakePayloads(t)}
	serveAt(t, ip, f)
	return f
}

// serveAt serves at port 6060 of an address until the test ends.
func serveAt(t *testing.T, ip string, handler http.Handler) {
	t.Helper()
	listener, err := net.Listen("tcp", ip+":6060")
	require.NoError(t, err)
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

// fakePayloads returns a captured profile for each path of net/http/pprof.
func fakePayloads(t *testing.T) map[string][]byte {
	t.Helper()
	captured, payloads := capturedPayloads(t), map[string][]byte{}
	for path, file := range map[string]string{
		"profile": "go-cpu-labels", "allocs": "go-allocs", "goroutine": "go-goroutine", "block": "go-block",
		"mutex": "go-mutex",
	} {
		payloads["/debug/pprof/"+path] = captured[file+".pb.gz"]
	}
	return payloads
}
