// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stops are the ways in which a collector ends.
var stops = map[string]func(*collector, testing.TB){
	"SIGTERM": (*collector).Terminate,
	"SIGKILL": func(c *collector, _ testing.TB) { c.Kill() },
}

// TestAgentRestartsWithItsQueue stops the agent while its backend is away. What it has acknowledged is on disk, and
// arrives once when both are back.
func TestAgentRestartsWithItsQueue(t *testing.T) {
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			backend := freeAddress(t)
			c := newChain(t, backend, backend, "otlp")
			c.startAgent(t)
			acked := c.sendMessages(t, 0, 50)
			stop(c.agent, t)
			c.startAgent(t)
			maps.Copy(acked, c.sendMessages(t, 50, 60))
			c.startEnd(t)
			require.Zero(t, c.requireSeen(t, acked), "everything arrives once: nothing was delivered before")
			c.agent.Terminate(t)
			c.end.Terminate(t)
		})
	}
}

// TestAgentIsStoppedWhileItDelivers stops the agent while it delivers. What was acknowledged arrives: once after an
// orderly stop, at least once after a kill.
func TestAgentIsStoppedWhileItDelivers(t *testing.T) {
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			backend := freeAddress(t)
			c := newChain(t, backend, backend, "otlp")
			c.startEnd(t)
			c.startAgent(t)
			acked := c.sendUntilRefused(t, 100, func() { stop(c.agent, t) })
			c.startAgent(t)
			maps.Copy(acked, c.sendMessages(t, 100_000, 100_010))
			again, unacknowledged := c.requireAcknowledged(t, acked)
			if name == "SIGTERM" {
				require.Zero(t, again, "nothing arrives twice")
			}
			// The message whose acknowledgement was lost, and, after a kill, those that were under way.
			require.LessOrEqual(t, unacknowledged, 20)
			require.LessOrEqual(t, again, 10*20)
			t.Logf("%d samples were acknowledged, %d arrived twice", len(acked), again)
		})
	}
}

// sendUntilRefused sends messages, and calls stop after some of them while it goes on. It returns the observations that
// were acknowledged.
func (c *chain) sendUntilRefused(t *testing.T, some int, stop func()) observations {
	t.Helper()
	client := dial(t, c.agent.otlp)
	var sending sync.WaitGroup
	sentSome := make(chan struct{})
	acked, sent := observations{}, 0
	var err error
	sending.Go(func() {
		for ; err == nil; sent++ {
			if sent == some {
				close(sentSome)
			}
			pd := message(sent)
			if err = export(client, pd); err == nil {
				acked.add(pd)
			}
		}
	})
	select {
	case <-sentSome:
	case <-time.After(startTimeout):
	}
	stop()
	sending.Wait()
	require.Greater(t, sent, some, err)
	return acked
}

// requireAcknowledged waits until all that was acknowledged is at the end, and stops the collectors. It returns how
// many samples arrived again, and how many arrived without an acknowledgement.
func (c *chain) requireAcknowledged(t *testing.T, acked observations) (again, unacknowledged int) {
	t.Helper()
	waitForAll(t, acked, func() observations { return c.arrived(t) })
	// Everything else arrives before these collectors end.
	c.agent.Terminate(t)
	c.end.Terminate(t)
	got := c.arrived(t)
	for _, n := range got {
		again += int(n) - 1
	}
	return again, len(got) - len(acked)
}
