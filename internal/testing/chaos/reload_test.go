// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// TestReloads reloads the configuration of an agent repeatedly while programs send to it.
func TestReloads(t *testing.T) {
	s := newScenario(t, alsoShort)
	t.Parallel()
	l, _, n := startAgent(t)
	from := startTraffic(t, l, 2,
		map[string]sendFunc{"push": pushes(n.pprof, 0), "otlp": exports(t, n.otlp, 0), "hec": events(n.hec, 0)})
	reload := func(times int) {
		// A reload takes 0.6 s while the other scenarios run, and longer on a busy machine.
		done, deadline := 0, time.Now().Add(11*time.Minute)
		for ; done < times && time.Now().Before(deadline); done++ {
			n.reload(t)
			time.Sleep(s.between(0, 50*time.Millisecond))
		}
		t.Logf("%d reloads", done)
	}
	reload(5)
	before := n.usage(t)
	reload(s.size(15, 1_000))
	l.requireAcknowledged(t, 100)
	n.requireBack(t, before)
	from.requireDelivered(t, bySenders, n)
}

// reload makes the process read its configuration again, and waits until it is ready.
func (n *node) reload(t *testing.T) {
	t.Helper()
	require.True(t, n.reloadOrEnd(t), "the reload ends the process")
}

// reloadOrEnd is reload, but the process can end instead. It reports whether the process still runs.
func (n *node) reloadOrEnd(t *testing.T) bool {
	t.Helper()
	before := n.Log.Len()
	ready := func() bool { return strings.Contains(n.Log.From(before), "Everything is ready") }
	require.NoError(t, n.Signal(syscall.SIGHUP))
	for deadline := time.Now().Add(endTimeout); !ready(); time.Sleep(5 * time.Millisecond) {
		select {
		case <-n.Exited:
			return false
		default:
		}
		require.True(t, time.Now().Before(deadline), "the reload does not end")
	}
	return true
}

// TestReloadWithoutTheBackendOfMetrics reloads a configuration, and stops, while the backend of the collector's own
// metrics refuses connections or never answers.
func TestReloadWithoutTheBackendOfMetrics(t *testing.T) {
	newScenario(t, alsoShort)
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	_, to := startBackend(t)
	for _, backend := range []string{collectortest.FreeAddress(t), silent.Addr().String()} {
		n := newNode(t, agentConfig, to.address, "--config=yaml:service::telemetry::metrics::readers: "+
			"[{periodic: {exporter: {otlp: {protocol: http/protobuf, endpoint: 'http://"+backend+"/v1/metrics'}}}}]")
		n.start(t)
		n.reload(t)
		require.Less(t, n.requireEnds(t), endTimeout/2)
		require.NoError(t, n.ExitErr)
		require.Contains(t, n.Log.String(), "cannot send the last of the collector's own metrics")
	}
}

// TestReloadOfABadConfiguration makes an agent reload a configuration that is not valid while its backend is gone. The
// process ends in order, and the next one delivers.
func TestReloadOfABadConfiguration(t *testing.T) {
	newScenario(t, alsoShort)
	t.Parallel()
	l := newLedger()
	to := newBackend(t, l)
	override := t.TempDir() + "/override.yaml"
	write := func(text string) { writeText(t, override, text) }
	write("processors: {dictionary_dedup: {max_batch_bytes: 100000}}")
	n := newNode(t, agentConfig, to.address, "--config="+override)
	n.start(t)
	from := startTraffic(t, l, 2, map[string]sendFunc{"push": pushes(n.pprof, 0), "otlp": exports(t, n.otlp, 0)})
	l.requireAcknowledged(t, 100)
	write("processors: {dictionary_dedup: {max_batch_bytes: 1}}")
	require.NoError(t, n.Signal(syscall.SIGHUP))
	select {
	case <-n.Exited:
	case <-time.After(endTimeout):
		t.Fatal("it still runs, with an unknown configuration")
	}
	require.Error(t, n.ExitErr)
	require.Contains(t, n.Log.String(), "`max_batch_bytes` must be", "the log names the error")
	write("")
	to.start(t)
	n.start(t)
	l.requireAcknowledged(t, 20)
	from.requireDelivered(t, byNodes, n)
}
