// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSoak runs two agents and a gateway for SOAK. Now and then a process is killed, stopped, suspended or reloaded, or
// the backend goes away. One agent is never restarted, so that leaks show.
func TestSoak(t *testing.T) {
	s := newScenario(t, fullOnly)
	length := 20 * time.Second
	if text := os.Getenv("SOAK"); text != "" {
		var err error
		length, err = time.ParseDuration(text)
		require.NoError(t, err, "SOAK")
	}
	l, to := startBackend(t)
	gateway := newNode(t, gatewayConfig, to.address)
	gateway.start(t)
	between := startProxy(t, gateway.otlp, func() fate {
		return fate{requests: s.Int64N(10_000_000), answers: 1 << 40, reset: true}
	})
	lasting, mortal := newNode(t, agentConfig, between.address), newNode(t, agentConfig, between.address)
	lasting.start(t)
	mortal.start(t)
	sends := map[string]sendFunc{}
	for name, n := range map[string]*node{"lasting": lasting, "mortal": mortal} {
		sends["push-"+name], sends["otlp-"+name] = pushes(n.pprof, 1_000), exports(t, n.otlp, 1_000)
		sends["http-"+name], sends["hec-"+name] = otlpPosts(n.otlpHTTP, 1_000), events(n.hec, 1_000)
	}
	from := startTraffic(t, l, 2, sends)
	l.requireAcknowledged(t, 500)
	before := lasting.usage(t)
	faults := []func(){
		func() { mortal.Kill(); mortal.start(t) },
		func() { gateway.Kill(); gateway.start(t) },
		func() { mortal.requireEnds(t); mortal.start(t) },
		func() { gateway.requireEnds(t); gateway.start(t) },
		func() { to.stop(); time.Sleep(s.between(0, 5*time.Second)); to.start(t) },
		func() {
			require.NoError(t, gateway.Signal(syscall.SIGSTOP))
			time.Sleep(s.between(0, 5*time.Second))
			require.NoError(t, gateway.Signal(syscall.SIGCONT))
		},
		func() { lasting.reload(t) },
	}
	lastReport := time.Now()
	for deadline := time.Now().Add(length); time.Now().Before(deadline); {
		faults[s.IntN(len(faults))]()
		l.requireAcknowledged(t, 100)
		time.Sleep(s.between(0, 3*time.Second))
		if time.Since(lastReport) > time.Minute {
			lastReport = time.Now()
			t.Logf("%v; %+v; at most %.0f MiB", l.balance(), lasting.usage(t), lasting.peakMiB(t))
		}
	}
	from.end()
	lasting.requireBack(t, before)
	require.Less(t, lasting.peakMiB(t), 512.0)
	l.requireDelivered(t, byNodes)
}
