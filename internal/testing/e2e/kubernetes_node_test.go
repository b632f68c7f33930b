// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

// fullNode is the number of pods that Kubernetes puts on a node at most, by default.
const fullNode = 110

// TestKubernetesFullNode measures the agent of a full node: every pod is scraped for every kind, a tenth of them with
// large heaps. docs/kubernetes.md has the command and what it printed.
func TestKubernetesFullNode(t *testing.T) {
	if os.Getenv("E2E_KUBERNETES") == "" {
		t.Skip("docs/kubernetes.md has the command")
	}
	c := startCluster(t)
	c.addNamespace(t, demo)
	c.apply(t, "config/kubernetes/overlays/agent")
	small, large := growing(t, "go-allocs", fullNode*9/10), growing(t, "go-compile-nethttp-heap-large", fullNode/10)
	for i := range fullNode {
		name := fmt.Sprintf("app-%d", i)
		heap := small
		if i%10 == 0 {
			heap = large
		}
		startBusy(t, podIP(100+i), heap)
		c.addApplication(t, application{
			name: name, node: "node-a", ip: podIP(100 + i), owner: "StatefulSet/" + name,
			annotations: map[string]string{"pprof.io/scrape": "true", "pprof.io/port": "6060"},
		})
	}
	to := startBackend(t)
	pod := c.addAgentPod(t, "k9z4m", "node-a", podIP(1))
	agent := c.runPod(t, pod, map[string]string{"BACKEND_ENDPOINT": to.address, "BACKEND_INSECURE": "true"})

	const start, end = 45 * time.Second, 165 * time.Second // eight whole intervals after the first scrapes
	time.Sleep(start)
	before := agent.cpuSeconds(t)
	time.Sleep(end - start)
	used := agent.cpuSeconds(t) - before
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", agent.Pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM:") || strings.HasPrefix(line, "Rss") {
			t.Log(strings.Join(strings.Fields(line), " "))
		}
	}
	t.Logf("%.1f %% of a core; %d messages to the backend", 100*used/(end-start).Seconds(), len(to.received))
	states, err := targetStates("http://" + podIP(1) + ":4041/targets?format=json")
	require.NoError(t, err)
	require.Len(t, states, fullNode)
	for name, state := range states {
		require.Equal(t, "up", state, name)
	}
	agent.requireNoErrors(t)
}

// growing returns a function that returns a heap profile. All its values grow each time that the pods have asked for
// it.
func growing(t *testing.T, file string, pods int) func() []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, "testdata", "pprof", file+".pb.gz"))
	require.NoError(t, err)
	heap, err := profile.ParseData(content)
	require.NoError(t, err)
	versions := make([][]byte, 15)
	for i := range versions {
		for _, sample := range heap.Sample {
			for j := range sample.Value {
				sample.Value[j] += sample.Value[j]/3 + 7
			}
		}
		var out bytes.Buffer
		require.NoError(t, heap.Write(&out))
		versions[i] = out.Bytes()
	}
	var asked atomic.Int64
	return func() []byte { return versions[min(int(asked.Add(1)-1)/pods, len(versions)-1)] }
}

// startBusy serves captured profiles as net/http/pprof does, CPU profiles after the time that was asked for.
func startBusy(t *testing.T, ip string, heap func() []byte) {
	t.Helper()
	payloads := fakePayloads(t)
	serveAt(t, ip, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path.Base(r.URL.Path) {
		case "allocs":
			_, _ = w.Write(heap())
			return
		case "profile":
			seconds, _ := strconv.Atoi(r.FormValue("seconds"))
			select {
			case <-time.After(time.Duration(seconds) * time.Second):
			case <-r.Context().Done():
			}
		}
		_, _ = w.Write(payloads[r.URL.Path])
	}))
}
