// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// startAnswered starts a node before a backend that answers as refuse does, and senders.
func startAnswered(t *testing.T, config string, refuse func(int64) error, flags ...string) (*node, *ledger, *traffic) {
	t.Helper()
	l := newLedger()
	to := newBackend(t, l)
	to.refuse = refuse
	to.start(t)
	n := newNode(t, config, to.address, flags...)
	n.start(t)
	return n, l, startTraffic(t, l, 8, map[string]way{"http": otlpPosts(n.otlpHTTP, 0), "otlp": exports(t, n.otlp, 0)})
}

// TestAlternatingAnswers has a backend say at every second request that it has no such service.
func TestAlternatingAnswers(t *testing.T) {
	s := newScenario(t, inSlice)
	t.Parallel()
	n, l, from := startAnswered(t, fallbackConfig, func(n int64) error {
		if n%2 == 0 {
			return status.Error(codes.Unimplemented, "unknown service")
		}
		return nil
	}, "--set=exporters.profiles_to_logs.recheck_interval=100ms")
	l.requireAcknowledged(t, s.size(1_000, 10_000))
	from.end()
	l.requireDelivered(t, bySenders)
	n.requireEnds(t)
}

// TestLongRetryAfter has a backend ask for a pause of a day once.
func TestLongRetryAfter(t *testing.T) {
	newScenario(t, inSlice)
	t.Parallel()
	n, l, from := startAnswered(t, fallbackConfig, busyOnce, "--set=exporters.profiles_to_logs.max_retry_after=1s")
	l.requireAcknowledged(t, 100)
	from.end()
	l.requireDelivered(t, bySenders)
	n.requireEnds(t)
}

// TestLongRetryAfterOverRestart does the same to the Collector's own exporter, which waits the day. A restart asks again.
func TestLongRetryAfterOverRestart(t *testing.T) {
	newScenario(t, inSlice)
	t.Parallel()
	n, l, from := startAnswered(t, agentConfig, busyOnce)
	l.requireAcknowledged(t, 100)
	from.end()
	n.requireEnds(t)
	n.start(t)
	l.requireDelivered(t, bySenders)
	n.requireEnds(t)
}

// busyOnce refuses the first request, for a day.
func busyOnce(request int64) error {
	if request > 1 {
		return nil
	}
	answer, _ := status.New(codes.ResourceExhausted, "busy").WithDetails(
		&errdetails.RetryInfo{RetryDelay: durationpb.New(24 * time.Hour)})
	return answer.Err()
}

// TestRefusedForGood has a backend refuse every third request in a way that cannot change. What it refuses is gone, and
// all of it is counted.
func TestRefusedForGood(t *testing.T) {
	s := newScenario(t, inSlice)
	t.Parallel()
	for name, answer := range map[string]error{
		"too large": status.Error(codes.ResourceExhausted, "message larger than max"),
		"malformed": status.Error(codes.InvalidArgument, "malformed"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, l, from := startAnswered(t, agentConfig, func(n int64) error {
				if n%3 == 0 {
					return answer
				}
				return nil
			}, "--set=service.pipelines.profiles.receivers=[otlp_profiles]") // not the agent's own profiles
			l.requireAcknowledged(t, s.size(1_000, 10_000))
			from.end()
			var b balance
			counted := func() float64 { return n.metric(t, "otelcol_exporter_send_failed_profile_samples") }
			// What is not delivered yet looks missing for a moment. What was broken off at the end may have been refused as well.
			asCounted := func() bool { n := int(counted()); return b.missing > 0 && b.missing <= n && n <= b.sent-b.arrived }
			for deadline := time.Now().Add(deliveryTimeout); !asCounted() && time.Now().Before(deadline); {
				time.Sleep(100 * time.Millisecond)
				b = l.balance()
			}
			t.Logf("%v; %v counted as refused by the backend", b, counted())
			require.True(t, asCounted())
			require.Zero(t, b.unexplained)
			n.requireEnds(t)
		})
	}
}
