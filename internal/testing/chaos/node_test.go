// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

const (
	agentConfig      = "config/agent.yaml"
	gatewayConfig    = "config/gateway.yaml"
	quickstartConfig = "config/quickstart.yaml"
	fallbackConfig   = "config/fallback.yaml"

	// endTimeout is the promise: a process ends within this time after SIGTERM, whatever its state is.
	endTimeout = 30 * time.Second
)

// node is where a collector runs. Its processes have the same addresses and the same disk, one after the other.
type node struct {
	*collectortest.Process
	config string
	flags  []string
	env    []string

	pprof, otlp, otlpHTTP, hec, splunk, splunkHTTP, page, health, metrics, debug string
	// storage is the folder of the queue, output that of the file exporter, targets the file that lists what to scrape.
	storage, output, targets string
}

// startAgent starts an agent in front of a backend.
func startAgent(t *testing.T) (*ledger, *backend, *node) {
	t.Helper()
	l, to := startBackend(t)
	n := newNode(t, agentConfig, to.address)
	n.start(t)
	return l, to, n
}

// startAgentAndGateway starts an agent, which sends to a gateway, which sends to a backend.
func startAgentAndGateway(t *testing.T) (l *ledger, to *backend, agent, gateway *node) {
	t.Helper()
	l, to = startBackend(t)
	gateway = newNode(t, gatewayConfig, to.address)
	gateway.start(t)
	agent = newNode(t, agentConfig, gateway.otlp)
	agent.start(t)
	return l, to, agent, gateway
}

// newNode prepares a configuration of this repository with free addresses, short waits and further flags.
func newNode(t testing.TB, config, backend string, flags ...string) *node {
	t.Helper()
	n := &node{config: config, storage: t.TempDir(), output: t.TempDir(), targets: t.TempDir() + "/targets.yaml"}
	for _, address := range []*string{
		&n.pprof, &n.otlp, &n.otlpHTTP, &n.hec, &n.splunk, &n.splunkHTTP, &n.page, &n.health, &n.metrics, &n.debug,
	} {
		*address = collectortest.FreeAddress(t)
	}
	_, metricsPort, err := net.SplitHostPort(n.metrics)
	require.NoError(t, err)
	n.env = append(os.Environ(), "METRICS_PORT="+metricsPort, "PPROF_ENDPOINT="+n.pprof, "OTLP_GRPC_ENDPOINT="+n.otlp,
		"OTLP_HTTP_ENDPOINT="+n.otlpHTTP, "SPLUNK_HEC_ENDPOINT="+n.hec, "SPLUNK_HTTP_ENDPOINT="+n.splunkHTTP,
		"SPLUNK_GRPC_ENDPOINT="+n.splunk, "STATUS_ENDPOINT="+collectortest.FreeAddress(t),
		"HEALTH_ENDPOINT="+n.health, "BACKEND_ENDPOINT="+backend, "SCRAPE_TARGETS="+n.targets,
		"PROFILES_OUT="+n.output, "PAGE_ENDPOINT="+n.page)
	n.setStorage(n.storage)
	n.flags = []string{"--set=extensions.pprof.endpoint=" + n.debug}
	switch config {
	case agentConfig, gatewayConfig:
		n.flags = append(n.flags, "--set=service.extensions=[file_storage,health_check,pprof]",
			"--set=exporters.otlp_grpc.retry_on_failure.initial_interval=100ms",
			"--set=exporters.otlp_grpc.retry_on_failure.max_interval=500ms",
			"--set=processors.dictionary_dedup.timeout=200ms")
	case fallbackConfig:
		n.flags = append(n.flags, "--set=service.extensions=[file_storage,pprof]",
			"--set=exporters.profiles_to_logs.retry_on_failure.initial_interval=100ms",
			"--set=exporters.profiles_to_logs.retry_on_failure.max_interval=500ms")
	default:
		n.flags = append(n.flags, "--set=service.extensions=[pprof]")
	}
	n.flags = append(n.flags, flags...) // the last value counts
	return n
}

func (n *node) setStorage(folder string) {
	n.storage = folder
	n.env = append(n.env, "QUEUE_DIRECTORY="+folder)
}

// start starts a process, and waits until it is ready.
func (n *node) start(t testing.TB) {
	t.Helper()
	n.startWithoutWaiting(t)
	n.WaitUntilReady(t)
}

func (n *node) startWithoutWaiting(t testing.TB) {
	t.Helper()
	path := os.Getenv("CHAOS_BINARY")
	if path == "" {
		var err error
		path, err = collectortest.Binary()
		require.NoError(t, err)
	}
	command := exec.Command(path, append([]string{"--config", n.config}, n.flags...)...)
	command.Dir = collectortest.Repository
	command.Env = n.env
	n.Process = collectortest.Start(t, command, n.config)
}

// requireEnds sends SIGTERM, and requires that the process ends in time.
func (n *node) requireEnds(t testing.TB) time.Duration {
	t.Helper()
	began := time.Now()
	require.NoError(t, n.Signal(syscall.SIGTERM))
	select {
	case <-n.Exited:
		took := time.Since(began)
		t.Logf("%s ended %.1f s after SIGTERM", filepath.Base(n.config), took.Seconds())
		return took
	case <-time.After(endTimeout):
		t.Fatalf("%s still runs %s after SIGTERM\n%s", n.config, endTimeout, n.goroutines())
		return 0
	}
}

// usage is what a process uses at a moment.
type usage struct{ goroutines, descriptors int }

func (n *node) usage(t testing.TB) usage {
	t.Helper()
	u, err := n.askUsage(t)
	require.NoError(t, err)
	return u
}

// askUsage returns an error if the process does not answer in time.
func (n *node) askUsage(t testing.TB) (u usage, err error) {
	t.Helper()
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.Pid))
	if err != nil {
		t.Skip("needs /proc")
	}
	u.descriptors = len(descriptors)
	_, err = fmt.Sscanf(n.goroutines(), "goroutine profile: total %d", &u.goroutines)
	return u, err
}

// requireBack waits until the process uses no more than before, with some slack.
func (n *node) requireBack(t testing.TB, before usage) {
	t.Helper()
	const slack = 30
	var now usage
	ok := func() bool {
		httpClient.CloseIdleConnections()
		var err error
		now, err = n.askUsage(t)
		return err == nil && now.goroutines <= before.goroutines+slack && now.descriptors <= before.descriptors+slack
	}
	for deadline := time.Now().Add(deliveryTimeout); !ok(); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("before: %+v, now: %+v\n%s", before, now, n.goroutines())
		}
	}
	t.Logf("before: %+v, now: %+v", before, now)
}

// goroutines returns the profile of goroutines as text, or the error if the process does not answer.
func (n *node) goroutines() string {
	text, err := get("http://" + n.debug + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		return err.Error()
	}
	return text
}

// metric adds up the series of the collector's own metrics whose name and labels match a pattern.
func (n *node) metric(t testing.TB, pattern string) (sum float64) {
	t.Helper()
	page, err := get("http://" + n.metrics + "/metrics")
	require.NoError(t, err)
	for _, series := range regexp.MustCompile(`(?m)^`+pattern+`.* (\S+)$`).FindAllStringSubmatch(page, -1) {
		value, err := strconv.ParseFloat(series[1], 64)
		require.NoError(t, err)
		sum += value
	}
	return sum
}

// peakMiB returns the largest resident set that the process has had.
func (n *node) peakMiB(t testing.TB) float64 {
	t.Helper()
	peak := n.statusMiB("VmHWM:")
	require.Positive(t, peak)
	return peak
}

// statusMiB reads a size from /proc, or returns 0 if the process is gone.
func (n *node) statusMiB(name string) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.Pid))
	_, rest, found := strings.Cut(string(status), name)
	if !found {
		return 0
	}
	kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	return kib / 1024
}

func get(url string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := httpClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}
