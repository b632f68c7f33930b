// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// stops are the ways in which a collector ends.
var stops = map[string]func(*collector, testing.TB){
	"SIGTERM": (*collector).Terminate,
	"SIGKILL": func(c *collector, _ testing.TB) { c.Kill() },
}

// TestAgentRestartsWithItsQueue stops the agent while its backend is away. What it has acknowledged is on disk, and is
// delivered, once, when both are there again.
func TestAgentRestartsWithItsQueue(t *testing.T) {
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			backend := freeAddress(t)
			w := newWay(t, backend, backend, "otlp")
			w.agent = w.startAgent()
			acked := w.sendMessages(t, 0, 50)
			stop(w.agent, t)
			w.agent = w.startAgent()
			maps.Copy(acked, w.sendMessages(t, 50, 60))
			w.end = w.startEnd()
			require.Zero(t, w.requireSeen(t, acked), "everything arrives once: nothing was delivered before")
			w.agent.Terminate(t)
			w.end.Terminate(t)
		})
	}
}

// TestAgentIsStoppedWhileItDelivers stops the agent in the midst of its work. What was acknowledged arrives: once if it
// could end in order, and at least once if it was killed.
func TestAgentIsStoppedWhileItDelivers(t *testing.T) {
	for name, stop := range stops {
		t.Run(name, func(t *testing.T) {
			backend := freeAddress(t)
			w := newWay(t, backend, backend, "otlp")
			w.end = w.startEnd()
			w.agent = w.startAgent()
			acked := w.sendUntilRefused(t, 100, func() { stop(w.agent, t) })
			w.agent = w.startAgent()
			maps.Copy(acked, w.sendMessages(t, 100_000, 100_010))
			again, unasked := w.requireAcknowledged(t, acked)
			if name == "SIGTERM" {
				require.Zero(t, again, "nothing arrives twice")
			}
			// The message whose acknowledgement was lost, and, after a kill, those that were under way.
			require.LessOrEqual(t, unasked, 20)
			require.LessOrEqual(t, again, 10*20)
			t.Logf("%d samples were acknowledged, %d arrived twice", len(acked), again)
		})
	}
}

// sendUntilRefused sends messages, calls stop after some of them, while it goes on, and gives the observations of those that
// were acknowledged.
func (w *way) sendUntilRefused(t *testing.T, some int, stop func()) seen {
	t.Helper()
	connection, err := grpc.NewClient(w.agent.endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer connection.Close()
	client := pprofileotlp.NewGRPCClient(connection)
	var sending sync.WaitGroup
	sentSome := make(chan struct{})
	acked, sent := seen{}, 0
	sending.Go(func() {
		for ; err == nil; sent++ {
			if sent == some {
				close(sentSome)
			}
			pd, observed := message(sent), seen{}
			observed.add(pd, w.detail)
			ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
			if _, err = client.Export(ctx, pprofileotlp.NewExportRequestFromProfiles(pd)); err == nil {
				maps.Copy(acked, observed)
			}
			cancel()
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

// requireAcknowledged waits until all that was acknowledged is at the end. It gives how many samples arrived again, and how
// many that were not acknowledged.
func (w *way) requireAcknowledged(t *testing.T, acked seen) (again, unasked int) {
	t.Helper()
	var got seen
	require.Eventually(t, func() bool {
		got = w.seen(t)
		for name := range acked {
			if got[name] == 0 {
				return false
			}
		}
		return true
	}, startTimeout, 200*time.Millisecond, "every acknowledged sample arrives")
	// What arrives again or unasked arrives before these collectors end.
	w.agent.Terminate(t)
	w.end.Terminate(t)
	got = w.seen(t)
	for _, n := range got {
		again += int(n) - 1
	}
	return again, len(got) - len(acked)
}
