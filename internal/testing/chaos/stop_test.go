// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fullQueue makes the queue so small that a few batches fill it. With block_on_overflow, as configured, senders wait.
const fullQueue = "--set=exporters.otlp_grpc.sending_queue.queue_size=9000000"

// large is the size of requests that fill it.
const large = 200_000

// TestStopWhileBlocked stops an agent and a gateway while their queue is full because the backend is gone or hangs, at
// once or after a reload. The next process delivers what was acknowledged.
func TestStopWhileBlocked(t *testing.T) {
	t.Parallel()
	for i, config := range []string{agentConfig, gatewayConfig} {
		for j, backend := range []string{"gone", "stopped"} {
			for k, signals := range []string{"SIGTERM", "SIGHUP and SIGTERM"} {
				t.Run(fmt.Sprintf("%s/backend %s/%s", filepath.Base(config), backend, signals), func(t *testing.T) {
					// CHAOS=short runs half of them, in which each value occurs with every value of the others.
					newScenario(t, level((i+j+k)%2))
					t.Parallel()
					stopWhileBlocked(t, config, backend == "stopped", strings.HasPrefix(signals, "SIGHUP"))
				})
			}
		}
	}
}

func stopWhileBlocked(t *testing.T, config string, hanging, reload bool) {
	l := newLedger()
	to := newBackend(t, l)
	n := newNode(t, config, to.address, fullQueue)
	if hanging {
		// A process that accepts connections and never answers.
		between := newNode(t, gatewayConfig, to.address)
		between.start(t)
		n = newNode(t, config, between.otlp, fullQueue)
		require.NoError(t, between.Signal(syscall.SIGSTOP))
		defer func() { require.NoError(t, between.Signal(syscall.SIGCONT)) }()
	}
	n.start(t)
	sends := map[string]sendFunc{"otlp": exports(t, n.otlp, large), "http": otlpPosts(n.otlpHTTP, large)}
	if config == agentConfig {
		sends["push"], sends["hec"] = pushes(n.pprof, large), events(n.hec, large)
	}
	from := startTraffic(t, l, 2, sends)
	l.requireAcknowledged(t, samplesPerRequest)
	l.waitUntilStuck(t, 3*time.Second)
	if reload {
		n.reload(t) // which may take as long as a stop
	}
	n.requireEnds(t)
	from.end()
	to.start(t)
	if hanging {
		n.env = append(n.env, "BACKEND_ENDPOINT="+to.address)
	}
	n.start(t)
	l.requireDelivered(t, byNodes)
	n.requireEnds(t)
}

// TestStopWithSlowBodies stops an agent while clients send their bodies a byte a second.
func TestStopWithSlowBodies(t *testing.T) {
	newScenario(t, alsoShort)
	t.Parallel()
	l, _, n := startAgent(t)
	for path, address := range map[string]string{
		"/v1/pprof": n.pprof, "/v1/logs": n.splunkHTTP, "/services/collector/event": n.hec,
		"/v1development/profiles": n.otlpHTTP,
	} {
		for range 3 {
			sendSlowly(t, address, path)
		}
	}
	from := startTraffic(t, l, 2, map[string]sendFunc{"push": pushes(n.pprof, 0), "otlp": exports(t, n.otlp, 0)})
	l.requireAcknowledged(t, 50)
	n.requireEnds(t)
	from.end()
	n.start(t)
	l.requireDelivered(t, bySenders)
	n.requireEnds(t)
}

// sendSlowly begins a request whose body takes hours.
func sendSlowly(t *testing.T, address, path string) {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	_, err = fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 100000\r\n\r\n", path, address)
	require.NoError(t, err)
	go func() {
		for {
			if _, err := connection.Write([]byte("x")); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	}()
}
