// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLostConnections cuts and resets connections between programs, an agent and a gateway: during requests, and
// between a request and its answer.
func TestLostConnections(t *testing.T) {
	s := newScenario(t, alsoShort)
	t.Parallel()
	unlucky := func() fate {
		f := fate{requests: 1 << 40, answers: 1 << 40, reset: s.IntN(2) == 0}
		if s.IntN(2) == 0 {
			f.requests = s.Int64N(20_000)
		} else {
			f.answers = s.Int64N(2_000)
		}
		return f
	}
	l, to := startBackend(t)
	gateway := newNode(t, gatewayConfig, to.address)
	gateway.start(t)
	agent := newNode(t, agentConfig, startProxy(t, gateway.otlp, unlucky).address)
	agent.start(t)
	push, otlp := startProxy(t, agent.pprof, unlucky), startProxy(t, agent.otlp, unlucky)
	from := startTraffic(t, l, 8,
		map[string]sendFunc{"push": pushes(push.address, 0), "otlp": exports(t, otlp.address, 0)})
	l.requireAcknowledged(t, s.size(1_000, 20_000))
	from.requireDelivered(t, byNodes, agent, gateway)
}

// TestSlowClients has a thousand clients that send their bodies a byte a second. The requests of others are still
// acknowledged.
func TestSlowClients(t *testing.T) {
	s := newScenario(t, alsoShort)
	t.Parallel()
	l, _, n := startAgent(t)
	from := startTraffic(t, l, 2, map[string]sendFunc{"push": pushes(n.pprof, 0), "otlp": exports(t, n.otlp, 0)})
	l.requireAcknowledged(t, 50)
	before, peak := n.usage(t), n.peakMiB(t)
	t.Run("slow", func(t *testing.T) {
		for range s.size(300, 1_000) / 4 {
			for path, address := range map[string]string{
				"/v1/pprof": n.pprof, "/v1/logs": n.splunkHTTP, "/services/collector/event": n.hec,
				"/v1development/profiles": n.otlpHTTP,
			} {
				sendSlowly(t, address, path)
			}
		}
		time.Sleep(3 * time.Second)
		l.requireAcknowledged(t, 200)
	})
	n.requireBack(t, before)
	require.Less(t, n.peakMiB(t), peak+200)
	from.requireDelivered(t, bySenders, n)
}
