// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type object = map[string]any

// apiServer is as much of a Kubernetes API server as the discovery of pods asks for: list and watch.
type apiServer struct {
	*httptest.Server

	mu      sync.Mutex
	version int
	pods    map[string]object
	events  []object      // from the first version on
	changed chan struct{} // closed by the next event
	// selectors and tokens are what was asked with.
	selectors, tokens map[string]bool
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{pods: map[string]object{}, changed: make(chan struct{}), selectors: map[string]bool{},
		tokens: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	s.mu.Lock()
	s.selectors[query.Get("fieldSelector")] = true
	s.tokens[r.Header.Get("Authorization")] = true
	next := len(s.events)
	list := object{"kind": "PodList", "apiVersion": "v1", "metadata": object{"resourceVersion": strconv.Itoa(s.version)},
		"items": s.all()}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path != "/api/v1/pods":
		http.NotFound(w, r)
	case query.Get("watch") == "":
		_ = json.NewEncoder(w).Encode(list)
	case query.Get("sendInitialEvents") == "true":
		// As servers do that know no streaming lists.
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(object{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid",
			"code":    http.StatusUnprocessableEntity,
			"message": "sendInitialEvents is forbidden",
		})
	default:
		if from, err := strconv.Atoi(query.Get("resourceVersion")); err == nil {
			next = min(from, next)
		}
		s.stream(w, r, next)
	}
}

func (s *apiServer) all() []object {
	pods := []object{}
	for _, p := range s.pods {
		pods = append(pods, p)
	}
	return pods
}

// stream sends the events from the given one on, until the client goes.
func (s *apiServer) stream(w http.ResponseWriter, r *http.Request, next int) {
	for {
		s.mu.Lock()
		events, changed := s.events[next:], s.changed
		s.mu.Unlock()
		for _, e := range events {
			_ = json.NewEncoder(w).Encode(e)
			next++
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// event changes a pod.
func (s *apiServer) event(kind string, p object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	meta := p["metadata"].(object)
	meta["resourceVersion"] = strconv.Itoa(s.version)
	s.pods[meta["name"].(string)] = p
	if kind == "DELETED" {
		delete(s.pods, meta["name"].(string))
	}
	s.events = append(s.events, object{"type": kind, "object": p})
	close(s.changed)
	s.changed = make(chan struct{})
}

func apiPod(name, ip, annotation string) object {
	return object{
		"kind": "Pod", "apiVersion": "v1",
		"metadata": object{
			"name": name, "namespace": "shop", "uid": name + "-uid",
			"labels": object{"pod-template-hash": "7d9c", "app.kubernetes.io/version": "2.0"},
			"annotations": object{"pprof.io/scrape": annotation, "pprof.io/port": "6060",
				"resource.opentelemetry.io/service.namespace": "stores"},
			"ownerReferences": []object{{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cart-7d9c", "uid": "u",
				"controller": true}},
		},
		"spec": object{"nodeName": "node-1", "containers": []object{
			{"name": "app", "image": "shop/cart:2.0",
				"ports": []object{{"name": "http", "containerPort": 6060, "protocol": "TCP"}}},
			{"name": "proxy", "image": "envoy"},
		}},
		"status": object{
			"phase": "Running", "podIP": ip, "hostIP": "192.168.0.1",
			"containerStatuses": []object{{"name": "app", "containerID": "containerd://abc"}},
		},
	}
}

// The labels that discovery makes of what the API server says are what identity and the shipped rules expect.
func TestKubernetes(t *testing.T) {
	api := newAPIServer(t)
	api.event("ADDED", apiPod("cart-7d9c-1", "10.0.0.1", "true"))
	api.event("ADDED", apiPod("cart-7d9c-2", "10.0.0.2", "false"))
	w := watch(t, `
job_name: pods
kubernetes_sd_configs:
  - role: pod
    api_server: `+api.URL+`
    authorization: {credentials: t0ken}
    selectors: [{role: pod, field: spec.nodeName=node-1}]
profiles: {process_cpu: {enabled: false}, goroutine: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}
`+shippedRules(t))
	u := w.await(func(u Update) bool { return len(u.Targets) == 1 })
	assert.Equal(t, []string{"memory http://10.0.0.1:6060/debug/pprof/allocs"}, urls(u))
	assert.Equal(t, map[string]any{
		"service.name": "cart", "service.namespace": "stores", "service.version": "2.0",
		"service.instance.id": "shop.cart-7d9c-1.app",
		"server.address":      "10.0.0.1", "server.port": int64(6060),
		"k8s.namespace.name": "shop", "k8s.pod.name": "cart-7d9c-1", "k8s.pod.uid": "cart-7d9c-1-uid",
		"k8s.pod.ip":    "10.0.0.1",
		"k8s.node.name": "node-1", "k8s.container.name": "app", "k8s.replicaset.name": "cart-7d9c",
		"k8s.deployment.name":  "cart",
		"container.image.name": "shop/cart", "container.image.tags": []any{"2.0"}, "container.id": "abc",
	}, u.Targets[0].Resource.AsRaw())
	assert.Equal(t, 4, u.Jobs[0].Discovered)
	assert.Equal(t, [NumDropReasons]int{DropRelabelled: 2, DropDuplicate: 1}, u.Jobs[0].Dropped)
	first := u.Targets[0]

	api.event("MODIFIED", apiPod("cart-7d9c-2", "10.0.0.2", "true"))
	u = w.await(func(u Update) bool { return len(u.Targets) == 2 })
	assert.True(t, first.Equal(u.Targets[0]))
	api.event("DELETED", apiPod("cart-7d9c-1", "10.0.0.1", "true"))
	u = w.await(func(u Update) bool { return len(u.Targets) == 1 })
	assert.Equal(t, []string{"memory http://10.0.0.2:6060/debug/pprof/allocs"}, urls(u))

	w.stop()
	api.mu.Lock()
	defer api.mu.Unlock()
	require.Equal(t, map[string]bool{"spec.nodeName=node-1": true}, api.selectors)
	require.Equal(t, map[string]bool{"Bearer t0ken": true}, api.tokens)
	assert.True(t, strings.HasPrefix(api.URL, "http://127."))
}
