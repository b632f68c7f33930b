// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"path/filepath"
	"testing"
	"time"
)

// TestKilledAgent kills an agent repeatedly while programs send to all of its receivers, at last while its backend is
// away. It sends profiles or, if they have to cross logs, log records.
func TestKilledAgent(t *testing.T) {
	t.Parallel()
	for _, config := range []string{agentConfig, fallbackConfig} {
		t.Run(filepath.Base(config), func(t *testing.T) {
			s := newScenario(t, alsoShort)
			t.Parallel()
			l, to := startBackend(t)
			n := newNode(t, config, to.address)
			n.env = append(n.env, "PROFILES_MODE=always")
			n.start(t)
			sends := map[string]sendFunc{
				"push": pushes(n.pprof, 0), "otlp": exports(t, n.otlp, 0), "http": otlpPosts(n.otlpHTTP, 0),
			}
			if config == agentConfig {
				sends["hec"] = events(n.hec, 0)
			}
			from := startTraffic(t, l, 2, sends)
			for range s.size(3, 25) {
				l.requireAcknowledged(t, 1)
				time.Sleep(s.between(0, time.Second))
				n.Kill()
				n.start(t)
			}
			to.stop()
			l.requireAcknowledged(t, 20)
			n.Kill()
			to.start(t)
			n.start(t)
			l.requireAcknowledged(t, 100)
			from.requireDelivered(t, byNodes, n)
		})
	}
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
