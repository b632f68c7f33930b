// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package chaos

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/podtest"
)

// kubernetes begins the names of the pods of config/kubernetes.
const kubernetes = "kubernetes/"

// asPod gives a node the configuration, the environment and the limits of a pod. The agent and the gateway are those of
// the overlay `gateway`, the page is that of the overlay `page`.
func (r *siege) asPod(t *testing.T, n *node) {
	t.Helper()
	role := strings.TrimPrefix(r.config, kubernetes)
	overlay := "gateway"
	if role == "page" {
		overlay = role
	}
	pod := podtest.New(t, filepath.Join(collectortest.Repository, podtest.Manifests, "overlays", overlay),
		"otelcol-profiles-"+role, nil)
	r.containerMiB, r.goMiB = pod.LimitMiB, pod.RequestMiB
	n.config, n.flags = strings.TrimPrefix(pod.Args[0], "--config="), pod.Args[1:]
	n.env = append(n.env, pod.Env...)
	n.env = append(n.env, "BACKEND_ENDPOINT="+r.backend, "QUEUE_DIRECTORY="+n.storage, "STORE_DIRECTORY="+n.output,
		"BACKEND_INSECURE=true", "METRICS_HOST=localhost")
}

// TestAgentWithoutAPIServer starts the agent of a node of Kubernetes while the API server is away. What it receives
// arrives all the same.
func TestAgentWithoutAPIServer(t *testing.T) {
	newScenario(t, alsoShort)
	t.Parallel()
	l, to := startBackend(t)
	r := &siege{shipped: shipped{config: kubernetes + "agent"}, backend: to.address}
	n := r.newShippedNode(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	writeText(t, kubeconfig, "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], "+
		"clusters: [{name: c, cluster: {server: 'http://"+collectortest.FreeAddress(t)+"'}}]}")
	n.env = append(n.env, "KUBECONFIG="+kubeconfig)
	n.start(t)
	from := startTraffic(t, l, 2, map[string]sendFunc{"push": pushes(n.pprof, 0), "otlp": exports(t, n.otlp, 0)})
	l.requireAcknowledged(t, 50)
	from.requireDelivered(t, bySenders, n)
}
