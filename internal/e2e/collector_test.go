// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/collectortest"
)

const (
	// repository is the root of the checkout, seen from this package.
	repository   = collectortest.Repository
	startTimeout = collectortest.StartTimeout
)

func freeAddress(t testing.TB) string {
	t.Helper()
	return collectortest.FreeAddress(t)
}

// command runs the binary to its end with args, in the root of the repository, and gives all that it printed.
func command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := collectortest.Binary()
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), path, args...)
	run.Dir = repository
	out, err := run.CombinedOutput()
	return string(out), err
}

// collector is a running binary with the quickstart's configuration, its ports and its output folder moved to
// where nothing else is.
type collector struct {
	*collectortest.Process
	// endpoint is the pprof receiver's host and port, metrics that of the collector's own metrics, status that of the
	// page of targets, graphs that of the page of flame graphs.
	endpoint, metrics, status, graphs string
	// outputDir is where the file exporter writes.
	outputDir string
	command   *exec.Cmd
}

// startQuickstart starts config/quickstart.yaml, with further flags, and waits until it takes connections.
func startQuickstart(t *testing.T, flags ...string) *collector {
	t.Helper()
	endpoint, outputDir := freeAddress(t), filepath.Join(t.TempDir(), "made", "by-itself")
	return launchWith(t, endpoint, outputDir, "config/quickstart.yaml", flags,
		"PPROF_ENDPOINT="+endpoint, "PROFILES_OUT="+outputDir)
}

// launchWith starts the binary with a configuration, flags and variables, and waits until it takes connections at an
// endpoint that these name. The collector is stopped when the test ends, if the test has not done that.
func launchWith(t *testing.T, endpoint, outputDir, config string, flags []string, env ...string) *collector {
	t.Helper()
	path, err := collectortest.Binary()
	require.NoError(t, err)
	c := &collector{endpoint: endpoint, metrics: freeAddress(t), status: freeAddress(t), graphs: freeAddress(t), outputDir: outputDir}
	_, metricsPort, err := net.SplitHostPort(c.metrics)
	require.NoError(t, err)
	c.command = exec.Command(path, append([]string{"--config", config}, flags...)...)
	c.command.Dir = repository
	c.command.Env = append(append(os.Environ(), "METRICS_PORT="+metricsPort, "STATUS_ENDPOINT="+c.status, "PAGE_ENDPOINT="+c.graphs), env...)
	c.start(t, "the collector with "+config)
	return c
}

// start starts the command and waits until it listens. It ends when the test does.
func (c *collector) start(t testing.TB, name string) {
	t.Helper()
	c.Process = collectortest.Start(t, c.command, name)
	c.WaitUntilReady(t)
}
