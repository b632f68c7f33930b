// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// TestHostWithoutPrivileges runs config/host.yaml without privileges: it logs once what sampling needs, and everything
// else works. With EBPF_ON_UNAVAILABLE=fail it ends with the same error.
func TestHostWithoutPrivileges(t *testing.T) {
	t.Parallel()
	path, err := collectortest.Binary()
	require.NoError(t, err)
	binary := []string{path}
	if os.Getuid() == 0 {
		// Without capabilities root is like other users, except that it owns files.
		setpriv, err := exec.LookPath("setpriv")
		if err != nil {
			t.Skip("run by root, this needs setpriv")
		}
		binary = []string{setpriv, "--bounding-set=-all", "--inh-caps=-all", path}
	}
	binary = append(binary, "--config", hostConfig)
	c := newCollector(t, binary, "PROCESSES_GO=false", "PROCESSES_JAVA=false")
	c.start(t, "the collector with "+hostConfig)
	require.Eventually(t, func() bool { return strings.Contains(c.Log.String(), "eBPF profiling cannot start") },
		startTimeout, 50*time.Millisecond)
	want := "missing capabilities: BPF, PERFMON, SYS_PTRACE, CHECKPOINT_RESTORE, "
	if runtime.GOOS != "linux" {
		want = "the profiler is for Linux on amd64 and arm64"
	}
	require.Contains(t, c.Log.String(), want)
	require.Equal(t, "0", c.running(t))
	payload := capturedPayloads(t)["go-cpu-labels.pb.gz"]
	c.requirePush(t, "shop", payload)
	c.exportPayload(t, "by-otlp", payload)
	c.scrapeThisProcess(t, "scraped")
	waitForServices(t, c.graphs, 3)
	c.requireHealthy(t)
	c.Terminate(t)
	require.Equal(t, 1, strings.Count(c.Log.String(), "eBPF profiling cannot start"))

	c = newCollector(t, binary, "EBPF_ON_UNAVAILABLE=fail")
	out, err := c.command.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), `failed to start "profiling" receiver: eBPF profiling cannot start: `+want)
}

// running returns the value of the metric that reports whether the profiler runs.
func (c *collector) running(t *testing.T) string {
	t.Helper()
	page := c.ownMetrics(t)
	found := regexp.MustCompile(`(?m)^otelcol_receiver_profiling_running(?:\{.*\})? (\S+)$`).FindStringSubmatch(page)
	require.NotNil(t, found, page)
	return found[1]
}
