// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package chaos

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// startAnswered starts a backend with refuse, a node in front of it, and senders.
func startAnswered(t *testing.T, config string, refuse func(int64) error, flags ...string) (*node, *ledger, *traffic) {
	t.Helper()
	l := newLedger()
	to := newBackend(t, l)
	to.refuse = refuse
	to.start(t)
	n := newNode(t, config, to.address, flags...)
	n.start(t)
	return n, l,
		startTraffic(t, l, 8, map[string]sendFunc{"http": otlpPosts(n.otlpHTTP, 0), "otlp": exports(t, n.otlp, 0)})
}

// TestAlternatingAnswers has a backend that answers every second request with "no such service".
func TestAlternatingAnswers(t *testing.T) {
	s := newScenario(t, alsoShort)
	t.Parallel()
	n, l, from := startAnswered(t, fallbackConfig, func(n int64) error {
		if n%2 == 0 {
			return status.Error(codes.Unimplemented, "unknown service")
		}
		return nil
	}, "--set=exporters.profiles_to_logs.recheck_interval=100ms")
	l.requireAcknowledged(t, s.size(1_000, 10_000))
	from.requireDelivered(t, bySenders, n)
}

// TestLongRetryAfter has a backend that asks for a pause of a day, once.
func TestLongRetryAfter(t *testing.T) {
	newScenario(t, alsoShort)
	t.Parallel()
	n, l, from := startAnswered(t, fallbackConfig, busyOnce, "--set=exporters.profiles_to_logs.max_retry_after=1s")
	l.requireAcknowledged(t, 100)
	from.requireDelivered(t, bySenders, n)
}

// TestLongRetryAfterOverRestart has exporters wait that long. After a restart they try again.
func TestLongRetryAfterOverRestart(t *testing.T) {
	t.Parallel()
	for _, config := range []string{agentConfig, fallbackConfig} {
		t.Run(filepath.Base(config), func(t *testing.T) {
			newScenario(t, alsoShort)
			t.Parallel()
			n, l, from := startAnswered(t, config, busyOnce)
			l.requireAcknowledged(t, 100)
			from.end()
			n.requireEnds(t)
			n.start(t)
			l.requireDelivered(t, bySenders)
			n.requireEnds(t)
		})
	}
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

// TestRefusedForGood has a backend that refuses every third request permanently. What it refuses is lost, and every
// sample of it is counted.
func TestRefusedForGood(t *testing.T) {
	s := newScenario(t, alsoShort)
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
			}, "--set=service.pipelines.profiles.receivers=[otlp_profiles]") // without the agent's own profiles
			l.requireAcknowledged(t, s.size(1_000, 10_000))
			from.end()
			var b balance
			counted := func() float64 { return n.metric(t, "otelcol_exporter_send_failed_profile_samples") }
			// A sample that is not delivered yet looks missing. The backend may have refused requests that were cancelled at the
			// end.
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
