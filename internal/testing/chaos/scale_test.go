// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func writeText(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file+".part", []byte(text), 0o600))
	require.NoError(t, os.Rename(file+".part", file))
}

// TestManyServices sends the profiles of ten thousand services through an agent and a gateway.
func TestManyServices(t *testing.T) {
	s := newScenario(t, alsoShort)
	t.Parallel()
	l, _, agent, gateway := startAgentAndGateway(t)
	// Each request is of another service.
	services := s.size(1_000, 10_000)
	var sent atomic.Int64
	push := pushes(agent.pprof, 0)
	each := func(ctx context.Context, _ string, _ int) error {
		service := fmt.Sprintf("service-%d", sent.Add(1))
		l.sending(service, 0)
		err := push(ctx, service, 0)
		if err == nil {
			l.acknowledge(service, 0)
		}
		return err
	}
	from := startTraffic(t, newLedger(), 32, map[string]sendFunc{"each": each})
	require.Eventually(t, func() bool { return sent.Load() >= int64(services) }, 10*deliveryTimeout, 50*time.Millisecond)
	from.end()
	l.requireDelivered(t, bySenders)
	for _, n := range []*node{agent, gateway} {
		t.Logf("%s: at most %.0f MiB", n.config, n.peakMiB(t))
		require.Less(t, n.peakMiB(t), 512.0)
		n.requireEnds(t)
	}
}

// TestFlappingTargets lists thousands of targets, removes half of them, and lists them again, while an agent scrapes
// them. At the end the agent uses no more than at the start.
func TestFlappingTargets(t *testing.T) {
	s := newScenario(t, alsoShort)
	t.Parallel()
	_, to := startBackend(t)
	var scrapes atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(pprofBody("target", int(scrapes.Add(1)), 0))
	}))
	t.Cleanup(target.Close)
	n := newNode(t, agentConfig, to.address, "--config=yaml:receivers::pprof::scrape::configs: [{job_name: flapping, "+
		"scrape_interval: 5s, file_sd_configs: [{files: ['${env:SCRAPE_TARGETS}']}], profiles: {process_cpu: {enabled: false}, "+
		"memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}}]")
	list := func(from, to int) {
		var text strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&text, "- targets: [%q]\n  labels: {service_name: target-%d}\n", target.Listener.Addr(), i)
		}
		writeText(t, n.targets, text.String())
	}
	targets := s.size(1_000, 5_000)
	list(0, 1)
	n.start(t)
	require.Eventually(t, func() bool { return scrapes.Load() > 0 }, deliveryTimeout, 50*time.Millisecond)
	before := n.usage(t)
	for range s.size(3, 20) {
		list(0, targets)
		time.Sleep(s.between(500*time.Millisecond, 2*time.Second))
		list(targets/2, targets)
		time.Sleep(s.between(500*time.Millisecond, 2*time.Second))
	}
	require.Greater(t, scrapes.Load(), int64(targets/4), "targets are scraped")
	list(0, 1)
	n.requireBack(t, before)
	t.Logf("%d scrapes, at most %.0f MiB", scrapes.Load(), n.peakMiB(t))
	require.Less(t, n.peakMiB(t), 512.0)
	n.requireEnds(t)
}
