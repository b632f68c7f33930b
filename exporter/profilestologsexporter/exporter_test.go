// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func plainBody(t *testing.T, r *http.Request) []byte {
	var from io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if !assert.NoError(t, err) {
			return nil
		}
		from = z
	}
	body, err := io.ReadAll(from)
	assert.NoError(t, err)
	return body
}

// A peer with profiles gets profiles, unless the mode is always. A peer without the service gets the batch that it
// refused, and those after it, as log records.
func TestPeerGetsWhatItTakes(t *testing.T) {
	for name, tc := range map[string]struct {
		profiles       bool
		config         map[string]any
		asLogs         int
		mode, switches int64
	}{
		"profiles":    {profiles: true},
		"pprof":       {config: map[string]any{"format": "pprof"}, asLogs: 8, mode: 1, switches: 1},
		"otlp":        {config: map[string]any{"format": "otlp"}, asLogs: 8, mode: 1, switches: 1},
		"mode always": {profiles: true, config: map[string]any{"mode": "always"}, asLogs: 8, mode: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := &inbox{}
			config := map[string]any{"grpc": grpcServer(t, b, tc.profiles)}
			maps.Copy(config, tc.config)
			e := runExporter(t, config)
			e.send(t, batch("x", 5), batch("y", 3))
			assert.Equal(t, tc.asLogs, b.requireOnce(t, batch("x", 5), batch("y", 3)))
			assert.Equal(t, tc.asLogs > 0, b.profilesSeen == 0)
			assert.Equal(t, tc.mode, e.metric(t, "mode"))
			assert.Equal(t, tc.switches, e.metric(t, "switches"))
			assert.EqualValues(t, tc.asLogs, e.metric(t, "samples"))
			assert.EqualValues(t, tc.switches, e.log.FilterMessageSnippet("does not accept OTLP profiles").Len())
			assert.EqualValues(t, tc.switches, e.log.Len(), "one line for the switch")
		})
	}
}

// In the mode always, no answer to log records makes the exporter send profiles.
func TestAlwaysSendsNoProbe(t *testing.T) {
	b := &inbox{}
	e := runExporter(t,
		map[string]any{"mode": "always",
			"http": httpServerOf(t, b, func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
				assert.Equal(t, "/v1/logs", r.URL.Path)
				http.Error(w, "unsupported", http.StatusBadRequest)
				return true
			})})
	err := e.ConsumeProfiles(t.Context(), batch("x", 5))
	require.Error(t, err)
	assert.True(t, consumererror.IsPermanent(err))
}

// A peer that loses its profiles service and gets it back is followed both ways, one try in each interval.
func TestPeerThatChanges(t *testing.T) {
	t.Parallel() // it waits
	none := false
	b := &inbox{}
	b.refuseProfiles = func(int) error {
		if none {
			return status.Error(codes.Unimplemented, "unknown service")
		}
		return nil
	}
	e := runExporter(t, map[string]any{"grpc": grpcServer(t, b, true), "recheck_interval": "1500ms"})
	change := func(to bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		none = to
	}
	e.send(t, batch("a", 2))
	change(true)
	e.send(t, batch("b", 2), batch("c", 2), batch("d", 2))
	b.mu.Lock()
	assert.Equal(t, 2, b.profilesSeen, "one answer is enough for the interval")
	b.mu.Unlock()
	time.Sleep(1600 * time.Millisecond)
	e.send(t, batch("e", 2), batch("f", 2))
	b.mu.Lock()
	assert.Equal(t, 3, b.profilesSeen, "it is asked again once")
	b.mu.Unlock()
	change(false)
	time.Sleep(1600 * time.Millisecond)
	e.send(t, batch("g", 2), batch("h", 2))
	assert.Equal(t, 10, b.requireOnce(t, batch("a", 2), batch("b", 2), batch("c", 2), batch("d", 2), batch("e", 2),
		batch("f", 2), batch("g", 2), batch("h", 2)))
	assert.Equal(t, int64(2), e.metric(t, "switches"))
	assert.Zero(t, e.metric(t, "mode"))
	assert.Equal(t, 1, e.log.FilterMessageSnippet("the peer accepts OTLP profiles").Len())
}

// What passes is retried as profiles, and does not mean that there are none.
func TestFaultsThatPass(t *testing.T) {
	throttled, err := status.New(codes.ResourceExhausted, "slow down").
		WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Millisecond)})
	require.NoError(t, err)
	for name, fault := range map[string]error{
		"unavailable": status.Error(codes.Unavailable, "restarting"),
		"timeout":     status.Error(codes.DeadlineExceeded, "slow"),
		"throttled":   throttled.Err(),
	} {
		t.Run(name, func(t *testing.T) {
			b := &inbox{refuseProfiles: func(n int) error {
				if n < 3 {
					return fault
				}
				return nil
			}}
			e := runExporter(t, map[string]any{"grpc": grpcServer(t, b, true)})
			e.send(t, batch("x", 5))
			assert.Zero(t, b.requireOnce(t, batch("x", 5)))
			assert.Zero(t, e.metric(t, "switches"))
		})
	}
}

// Where a later request of a batch is refused for now, what the peer has is not sent again; where one is refused for
// good, the others arrive nevertheless.
func TestLargeBatch(t *testing.T) {
	large := batch("x", 600)
	for _, tc := range []struct {
		name   string
		refuse func(n int) error
		lost   bool
	}{
		{name: "later", refuse: func(n int) error {
			if n == 2 || n == 4 {
				return status.Error(codes.Unavailable, "later")
			}
			return nil
		}},
		{name: "never", lost: true, refuse: func(n int) error {
			if n == 2 {
				return status.Error(codes.InvalidArgument, "never")
			}
			return nil
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := &inbox{refuseLogs: tc.refuse}
			config := createDefaultConfig().(*Config)
			config.Encoding.MaxRecordBytes = 1000
			e, err := newExporter(exporter.Settings{TelemetrySettings: componenttest.NewNopTelemetrySettings()}, config)
			require.NoError(t, err)
			e.peer, config.MaxRequestBytes = memoryPeer{b}, 20_000
			rest := large
			for try := 0; ; try++ {
				require.Less(t, try, 5)
				err := e.push(t.Context(), rest)
				var later xconsumererror.Profiles
				if !errors.As(err, &later) {
					assert.NoError(t, err, "some were sent")
					break
				}
				rest = later.Data()
			}
			assert.Greater(t, b.logsSeen, 5)
			if !tc.lost {
				assert.Equal(t, 600, b.requireOnce(t, large))
				return
			}
			got, _ := b.samples(t)
			assert.Greater(t, len(got), 400)
			assert.Less(t, len(got), 600)
		})
	}
}

// memoryPeer is a peer without profiles.
type memoryPeer struct{ *inbox }

func (memoryPeer) Start(context.Context, component.Host) error { return nil }

func (memoryPeer) Shutdown() {}

func (memoryPeer) profilesRequest(pprofile.Profiles) (request, error) {
	return request{send: func(context.Context) answer {
		return answer{outcome: noService, err: consumererror.NewPermanent(errors.New("none"))}
	}}, nil
}

func (p memoryPeer) logsRequest(ld plog.Logs, _ int) (request, error) {
	return request{send: func(context.Context) answer {
		if err := p.takeLogs(ld); err != nil {
			return grpcAnswer(err, time.Minute)
		}
		return answer{}
	}}, nil
}

// A permanent refusal is returned, and not retried.
func TestRefusedForGood(t *testing.T) {
	b := &inbox{refuseLogs: func(int) error { return status.Error(codes.InvalidArgument, "never") }}
	e := runExporter(t, map[string]any{"grpc": grpcServer(t, b, false)})
	err := e.ConsumeProfiles(t.Context(), batch("x", 5))
	require.Error(t, err)
	assert.True(t, consumererror.IsPermanent(err))
	assert.Equal(t, 1, b.logsSeen)
}

// Each sample counts as sent or as failed by the answer to its own request, in the Collector's own metrics: with a
// queue and without, as profiles and as log records, refused at once or after a retry, or never accepted.
func TestSentAndFailedSamplesAreExact(t *testing.T) {
	const samples = 4000
	later, never := status.Error(codes.Unavailable, "later"), status.Error(codes.InvalidArgument, "never")
	all := func(err error) func(int) error { return func(int) error { return err } }
	at := func(err error, requests ...int) func(int) error {
		return func(n int) error {
			if slices.Contains(requests, n) {
				return err
			}
			return nil
		}
	}
	for name, answer := range map[string]func(n int) error{
		"all accepted":        nil,
		"two refused":         at(never, 2, 4),
		"all refused":         all(never),
		"retried":             at(later, 2, 4),
		"refused and retried": func(n int) error { return cmp.Or(at(never, 2, 5)(n), at(later, 3, 4)(n)) },
		"given up":            func(n int) error { return cmp.Or(at(never, 2)(n), at(later, 3)(n)) },
	} {
		if profiletest.IsRace && name != "refused and retried" { // which has all that can happen at the same time
			continue
		}
		for _, mode := range []string{"fallback", "always"} {
			for _, queue := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s queue=%t", name, mode, queue), func(t *testing.T) {
					b := &inbox{refuseProfiles: answer, refuseLogs: answer}
					e := runExporter(t, map[string]any{
						"grpc": grpcServer(t, b, true), "mode": mode, "max_request_bytes": minRequestBytes, "max_record_bytes": 1000,
						"sending_queue": map[string]any{"enabled": queue},
						"retry_on_failure": map[string]any{"enabled": name != "given up", "initial_interval": "1ms",
							"max_interval": "1ms"},
					})
					err := e.ConsumeProfiles(t.Context(), batch("x", samples))
					count := func(name string) int {
						return int(collectortest.Sum(t, e.telemetry, "otelcol_exporter_"+name+"_profile_samples", "exporter",
							"profiles_to_logs"))
					}
					require.Eventually(t, func() bool { return count("sent")+count("send_failed") == samples }, time.Minute,
						time.Millisecond)
					arrived := 0
					got, _ := b.samples(t)
					for _, n := range got {
						arrived += n
					}
					assert.Equal(t, arrived, count("sent"))
					assert.Equal(t, !queue && (name == "all refused" || name == "given up"), err != nil)
					switch name {
					case "all accepted", "retried":
						assert.Equal(t, samples, arrived)
					case "all refused":
						assert.Zero(t, arrived)
						assert.LessOrEqual(t, strings.Count(fmt.Sprint(e.log.All()), "Permanent error"),
							1+strings.Count(fmt.Sprint(e.log.All()), "not retryable"))
					default:
						assert.Positive(t, arrived)
						assert.Less(t, arrived, samples)
					}
				})
			}
		}
	}
}

// What the peer rejects of a request that it accepts has failed, and the log has its words.
func TestPartialSuccess(t *testing.T) {
	b := &inbox{partialLogs: 1}
	e := runExporter(t, map[string]any{"grpc": grpcServer(t, b, false)})
	e.send(t, manyProfiles(5, 1))
	assert.Equal(t, int64(1), e.metric(t, "rejected_items"))
	assert.EqualValues(t, 4, collectortest.Sum(t, e.telemetry, "otelcol_exporter_sent_profile_samples"))
	assert.EqualValues(t, 1, collectortest.Sum(t, e.telemetry, "otelcol_exporter_send_failed_profile_samples"))
	lines := e.log.FilterMessageSnippet("in part").All()
	require.Len(t, lines, 1)
	assert.Equal(t, "not these", lines[0].ContextMap()["message"])
	b.requireOnce(t, manyProfiles(5, 1))
}
