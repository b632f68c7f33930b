// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// startGateway starts config/gateway.yaml in front of a backend, with further flags. A second one can use the storage
// of the first.
func startGateway(t *testing.T, to *backend, storage string, flags ...string) *collector {
	t.Helper()
	return launchWith(t, gatewayConfig, flags, "BACKEND_ENDPOINT="+to.address, "QUEUE_DIRECTORY="+storage)
}

// impatient makes batches of a few requests and retries soon, since the clients of a test send little.
var impatient = []string{
	"--set=processors.dictionary_dedup.timeout=50ms",
	"--set=processors.dictionary_dedup.send_batch_size=100",
	"--set=exporters.otlp_grpc.retry_on_failure.initial_interval=50ms",
	"--set=exporters.otlp_grpc.retry_on_failure.max_interval=200ms",
}

// agents are clients that send messages, each sample with a function of its own, and keep count of those that were
// acknowledged.
type agents struct {
	t     *testing.T
	mu    sync.Mutex
	acked map[string]int
	sent  int
}

func newAgents(t *testing.T) *agents { return &agents{t: t, acked: map[string]int{}} }

// send sends messages from several clients at the same time, so many from each.
func (a *agents) send(to *collector, messages int) {
	a.t.Helper()
	client := dial(a.t, to.otlp)
	var running sync.WaitGroup
	for agent := range 6 {
		running.Go(func() {
			for range messages {
				pd, functions := a.message(agent)
				if err := export(client, pd); err != nil {
					a.t.Errorf("the gateway refused a message: %v", err)
					return
				}
				a.acknowledge(functions)
			}
		})
	}
	running.Wait()
}

func (a *agents) acknowledge(functions []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range functions {
		a.acked[name]++
	}
}

func (a *agents) message(agent int) (pd pprofile.Profiles, functions []string) {
	a.mu.Lock()
	a.sent++
	number := a.sent
	a.mu.Unlock()
	b := profiletest.New().Resource("service.name", fmt.Sprint("service-", agent%3)).
		Scope("agent", "1").Profile("cpu", "nanoseconds").Time(1_700_000_000_000_000_000, 10_000_000_000)
	for i := range 1 + number%20 {
		name := fmt.Sprintf("leaf-%d-%d", number, i)
		functions = append(functions, name)
		b.Sample(profiletest.Value(int64(i+1), name, "shared.handler", "main.main"))
	}
	return b.Build(), functions
}

func (a *agents) requireAll(to *backend) {
	a.t.Helper()
	got := waitForAll(a.t, a.acked, func() map[string]int { return leaves(a.t, to.messages()) })
	require.True(a.t, maps.Equal(a.acked, got), "each of the %d samples arrives once", len(a.acked))
}

// waitForAll waits until everything that was acknowledged has arrived, and returns what has arrived by then.
func waitForAll[M ~map[string]N, N int | int64](t *testing.T, acked M, arrived func() M) (got M) {
	t.Helper()
	require.Eventually(t, func() bool {
		got = arrived()
		for name := range acked {
			if got[name] == 0 {
				return false
			}
		}
		return true
	}, 2*startTimeout, 200*time.Millisecond, "every acknowledged sample arrives")
	return got
}

// TestGatewayLosesNothing sends from several clients through config/gateway.yaml while the backend is killed and
// restarted. Then it stops the gateway while the backend is away, and starts both again.
func TestGatewayLosesNothing(t *testing.T) {
	t.Parallel()
	to := startBackend(t)
	storage := t.TempDir()
	gateway := startGateway(t, to, storage, impatient...)
	from := newAgents(t)

	var sending sync.WaitGroup
	sending.Go(func() { from.send(gateway, 150) })
	to.kill(t)
	from.send(gateway, 20)
	to.start(t)
	sending.Wait()
	from.requireAll(to)

	sending.Go(func() { from.send(gateway, 50) })
	to.kill(t)
	sending.Wait()
	gateway.Terminate(t)
	to.start(t)
	gateway = startGateway(t, to, storage, impatient...)
	from.requireAll(to)
	gateway.Terminate(t)
	t.Logf("%d samples in %d messages arrived in %d", len(from.acked), from.sent, len(to.received))
	require.Less(t, len(to.received), from.sent, "messages were merged")
}
