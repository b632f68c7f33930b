// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"testing"
	"time"
)

// TestKilledAgent kills an agent repeatedly while programs send to all of its receivers.
func TestKilledAgent(t *testing.T) {
	s := newScenario(t, alsoShort)
	t.Parallel()
	l, _, n := startAgent(t)
	from := startTraffic(t, l, 2, map[string]sendFunc{
		"push": pushes(n.pprof, 0), "otlp": exports(t, n.otlp, 0), "http": otlpPosts(n.otlpHTTP, 0), "hec": events(n.hec, 0),
	})
	for range s.size(3, 25) {
		l.requireAcknowledged(t, 1)
		time.Sleep(s.between(0, time.Second))
		n.Kill()
		n.start(t)
	}
	l.requireAcknowledged(t, 100)
	from.requireDelivered(t, byNodes, n)
}

// TestKilledGateway kills a gateway behind an agent. The agent repeats requests.
func TestKilledGateway(t *testing.T) {
	s := newScenario(t, alsoShort)
	t.Parallel()
	l, _, agent, gateway := startAgentAndGateway(t)
	from := startTraffic(t, l, 3, map[string]sendFunc{"push": pushes(agent.pprof, 0), "otlp": exports(t, agent.otlp, 0)})
	for range s.size(3, 25) {
		l.requireAcknowledged(t, 1)
		time.Sleep(s.between(0, time.Second))
		gateway.Kill()
		time.Sleep(s.between(0, 500*time.Millisecond))
		gateway.start(t)
	}
	from.requireDelivered(t, byNodes, agent, gateway)
}
