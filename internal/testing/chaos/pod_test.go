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
