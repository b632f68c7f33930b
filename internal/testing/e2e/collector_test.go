// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

const (
	// repository is the root of the checkout, seen from this package.
	repository   = collectortest.Repository
	startTimeout = collectortest.StartTimeout

	quickstartConfig   = "config/quickstart.yaml"
	agentConfig        = "config/agent.yaml"
	gatewayConfig      = "config/gateway.yaml"
	standaloneConfig   = "config/standalone.yaml"
	hostConfig         = "config/host.yaml"
	splunkConfig       = "config/splunk.yaml"
	fallbackConfig     = "config/fallback.yaml"
	kafkaAgentConfig   = "config/kafka-agent.yaml"
	kafkaGatewayConfig = "config/kafka-gateway.yaml"
)

func freeAddress(t testing.TB) string {
	t.Helper()
	return collectortest.FreeAddress(t)
}

// collector is a running binary. No other process uses its addresses and folders.
type collector struct {
	*collectortest.Process
	command *exec.Cmd
	// endpoint is where the pprof receiver listens, otlp and otlpHTTP are where OTLP is received, over gRPC and HTTP.
	endpoint, otlp, otlpHTTP string
	// splunk, splunkHTTP and hec are where log records of Splunk's agents are received: over gRPC, HTTP, and as HEC
	// events.
	splunk, splunkHTTP, hec string
	// health serves the health check, metrics the collector's own metrics, status the page of targets, graphs the page of
	// flame graphs.
	health, metrics, status, graphs string
	// outputDir is where the file exporter writes. targets is the folder of the files that list what to scrape.
	outputDir, targets string
}

// setAddresses sets free addresses, and returns the variables by which the files of config/ learn them. A variable in
// env takes precedence.
func (c *collector) setAddresses(t testing.TB, env ...string) []string {
	t.Helper()
	var variables []string
	for name, address := range map[string]*string{
		"PPROF_ENDPOINT": &c.endpoint, "OTLP_GRPC_ENDPOINT": &c.otlp, "OTLP_HTTP_ENDPOINT": &c.otlpHTTP,
		"SPLUNK_GRPC_ENDPOINT": &c.splunk, "SPLUNK_HTTP_ENDPOINT": &c.splunkHTTP, "SPLUNK_HEC_ENDPOINT": &c.hec,
		"HEALTH_ENDPOINT": &c.health, "STATUS_ENDPOINT": &c.status, "PAGE_ENDPOINT": &c.graphs,
	} {
		*address = freeAddress(t)
		for _, variable := range env {
			if value, found := strings.CutPrefix(variable, name+"="); found {
				*address = value
			}
		}
		variables = append(variables, name+"="+*address)
	}
	c.metrics = freeAddress(t)
	_, metricsPort, err := net.SplitHostPort(c.metrics)
	require.NoError(t, err)
	return append(variables, "METRICS_PORT="+metricsPort)
}

// newCollector prepares a command line of the binary. Its addresses and folders are free ones, unless env sets them.
func newCollector(t testing.TB, command []string, env ...string) *collector {
	t.Helper()
	c := &collector{outputDir: filepath.Join(t.TempDir(), "made", "by-itself"), targets: t.TempDir()}
	c.command = exec.Command(command[0], command[1:]...)
	c.command.Dir = repository
	c.command.Env = append(os.Environ(), c.setAddresses(t, env...)...)
	c.command.Env = append(c.command.Env, "PROFILES_OUT="+c.outputDir, "SCRAPE_TARGETS="+c.targets+"/*.yaml",
		"QUEUE_DIRECTORY="+t.TempDir())
	c.command.Env = append(c.command.Env, env...) // the last value counts
	return c
}

// launchWith starts the binary with a configuration, flags and variables, and waits until it is ready. The collector is
// stopped when the test ends, if the test has not done that.
func launchWith(t testing.TB, config string, flags []string, env ...string) *collector {
	t.Helper()
	path, err := collectortest.Binary()
	require.NoError(t, err)
	c := newCollector(t, append([]string{path, "--config", config}, flags...), env...)
	c.start(t, "the collector with "+config)
	return c
}

func launch(t testing.TB, config string, env ...string) *collector {
	t.Helper()
	return launchWith(t, config, nil, env...)
}

// startQuickstart starts config/quickstart.yaml, which also writes what arrives to a file.
func startQuickstart(t *testing.T, flags ...string) *collector {
	t.Helper()
	return launchWith(t, quickstartConfig, append([]string{collectortest.ToFile}, flags...))
}

// startBatching starts a configuration with short batches, and waits until its health check is positive.
func startBatching(t *testing.T, config string, env ...string) *collector {
	t.Helper()
	c := launch(t, config,
		append([]string{"BATCH_TIMEOUT=50ms", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test"}, env...)...)
	c.requireHealthy(t)
	return c
}

func (c *collector) requireHealthy(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := get("http://" + c.health)
		return err == nil
	}, startTimeout, 50*time.Millisecond, "the health check answers")
}

// start starts the command and waits until it listens. It ends when the test does.
func (c *collector) start(t testing.TB, name string) {
	t.Helper()
	c.Process = collectortest.Start(t, c.command, name)
	c.WaitUntilReady(t)
}
