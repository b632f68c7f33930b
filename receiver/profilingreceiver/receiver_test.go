// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilingreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/profilingreceiver/internal/metadata"
)

const waitTimeout = 30 * time.Second

// fakeProfiler replaces the real one.
type fakeProfiler struct {
	next     xconsumer.Profiles
	startErr error
	// stuck blocks Start until it is closed, unless it is nil.
	stuck   chan struct{}
	running atomic.Bool
}

func (f *fakeProfiler) Start(context.Context, component.Host) error {
	if f.stuck != nil {
		<-f.stuck
	}
	f.running.Store(f.startErr == nil)
	return f.startErr
}

func (f *fakeProfiler) Shutdown(context.Context) error {
	f.running.Store(false)
	return nil
}

type harness struct {
	*profilingReceiver
	telemetry *componenttest.Telemetry
	log       *observer.ObservedLogs
	fake      *fakeProfiler
	// lacks is what the machine lacks; nil means that it lacks nothing.
	lacks atomic.Pointer[problems]
}

func newHarness(t *testing.T, next xconsumer.Profiles, change func(*Config)) *harness {
	t.Helper()
	h := &harness{telemetry: componenttest.NewTelemetry(), fake: &fakeProfiler{}}
	t.Cleanup(func() { require.NoError(t, h.telemetry.Shutdown(context.Background())) })
	set := receivertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = h.telemetry.NewTelemetrySettings()
	var core zapcore.Core
	core, h.log = observer.New(zap.InfoLevel)
	set.Logger = zap.New(core)
	cfg := createDefaultConfig().(*Config)
	if change != nil {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	if next == nil {
		next = consumertest.NewNop()
	}
	var err error
	h.profilingReceiver, err = newReceiver(set, cfg, next)
	require.NoError(t, err)
	h.settleTime, h.slotWait, h.firstRetry = 0, waitTimeout, time.Millisecond
	h.check = func(*Config) problems {
		if p := h.lacks.Load(); p != nil {
			return *p
		}
		return nil
	}
	h.create = func(_ context.Context, _ receiver.Settings, _ *ProfilerConfig,
		next xconsumer.Profiles) (component.Component, error) {
		h.fake.next = next
		return h.fake, nil
	}
	return h
}

// requireFailedStarts waits until so many starts have failed for a reason.
func (h *harness) requireFailedStarts(t *testing.T, why reason, least int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		return collectortest.Sum(t, h.telemetry, "otelcol_receiver_profiling_failed_starts", "reason", string(why)) >= least
	}, waitTimeout, time.Millisecond)
}

func (h *harness) requireRunning(t *testing.T, want int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		return collectortest.Sum(t, h.telemetry, "otelcol_receiver_profiling_running") == want
	}, waitTimeout, time.Millisecond)
}

// If the machine lacks something, each attempt is counted, and each change is logged once. The profiler starts when
// nothing is missing any more.
func TestRetries(t *testing.T) {
	h := newHarness(t, nil, nil)
	h.lacks.Store(&problems{{reasonMount, "no tracefs"}, {reasonPrivilege, "no BPF"}})
	require.NoError(t, h.Start(t.Context(), componenttest.NewNopHost()))
	h.requireRunning(t, 0)
	h.requireFailedStarts(t, reasonPrivilege, 3)
	h.lacks.Store(&problems{{reasonMount, "no tracefs"}})
	h.requireFailedStarts(t, reasonMount, 3)
	warnings := h.log.FilterMessageSnippet("eBPF profiling cannot start").All()
	require.Len(t, warnings, 2)
	require.Equal(t, "no tracefs; no BPF", warnings[0].ContextMap()["error"])
	require.Equal(t, "no tracefs", warnings[1].ContextMap()["error"])

	h.lacks.Store(nil)
	h.requireRunning(t, 1)
	require.True(t, h.fake.running.Load())
	require.NoError(t, h.Shutdown(t.Context()))
	require.False(t, h.fake.running.Load())
}

// If the profiler does not start in spite of the checks, it is shut down, and the receiver retries.
func TestProfilerThatFails(t *testing.T) {
	h := newHarness(t, nil, func(c *Config) { c.SkipChecks = true })
	h.lacks.Store(&problems{{reasonKernel, "not to be asked"}})
	h.fake.startErr = errors.New("no such map")
	require.NoError(t, h.Start(t.Context(), componenttest.NewNopHost()))
	h.requireFailedStarts(t, reasonOther, 2)
	require.NoError(t, h.Shutdown(t.Context()))
	require.Contains(t, fmt.Sprint(h.log.All()[0].ContextMap()), "start the eBPF profiler: no such map")
}

func TestFails(t *testing.T) {
	h := newHarness(t, nil, func(c *Config) { c.OnUnavailable = onUnavailableFail })
	h.lacks.Store(&problems{{reasonPrivilege, "no BPF"}})
	require.EqualError(t, h.Start(t.Context(), componenttest.NewNopHost()), "eBPF profiling cannot start: no BPF")
	require.NoError(t, h.Shutdown(t.Context()))

	h = newHarness(t, nil, func(c *Config) { c.OnUnavailable = onUnavailableFail })
	require.NoError(t, h.Start(t.Context(), componenttest.NewNopHost()))
	h.requireRunning(t, 1)
	require.NoError(t, h.Shutdown(t.Context()))
}

// A second receiver waits until the first has stopped, as after a reload that could not stop the first in time.
func TestOneAtATime(t *testing.T) {
	first, second := newHarness(t, nil, nil), newHarness(t, nil, nil)
	require.NoError(t, first.Start(t.Context(), componenttest.NewNopHost()))
	first.requireRunning(t, 1)
	second.slotWait = time.Millisecond
	require.NoError(t, second.Start(t.Context(), componenttest.NewNopHost()))
	second.requireFailedStarts(t, reasonBusy, 1)
	require.NoError(t, first.Shutdown(t.Context()))
	second.requireRunning(t, 1)
	require.NoError(t, second.Shutdown(t.Context()))
}

// Neither a profiler that is stuck in Start nor a pipeline that does not return delays a shutdown.
func TestShutdownIsBounded(t *testing.T) {
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	h := newHarness(t, nil, nil)
	h.fake.stuck = make(chan struct{})
	require.NoError(t, h.Start(t.Context(), componenttest.NewNopHost()))
	require.ErrorIs(t, h.Shutdown(soon()), context.DeadlineExceeded)
	close(h.fake.stuck)
	<-h.done

	arrived, leave := make(chan struct{}), make(chan struct{})
	next, err := xconsumer.NewProfiles(func(context.Context, pprofile.Profiles) error {
		close(arrived)
		<-leave
		return nil
	}, consumer.WithCapabilities(consumer.Capabilities{}))
	require.NoError(t, err)
	h = newHarness(t, next, nil)
	require.NoError(t, h.Start(t.Context(), componenttest.NewNopHost()))
	h.requireRunning(t, 1)
	go func() { _ = h.fake.next.ConsumeProfiles(context.Background(), report()) }()
	<-arrived
	require.ErrorContains(t, h.Shutdown(soon()), "deliver the eBPF profiler's last report")
	close(leave)
	h.consumer.inFlight.Wait()
}

// A report that is under way when the profiler stops arrives, although the profiler cancels its context. None arrives
// later.
func TestGate(t *testing.T) {
	arrived, leave := make(chan struct{}), make(chan struct{})
	var seen atomic.Int64
	next, err := xconsumer.NewProfiles(func(ctx context.Context, _ pprofile.Profiles) error {
		close(arrived)
		<-leave
		seen.Add(1)
		return ctx.Err()
	}, consumer.WithCapabilities(consumer.Capabilities{}))
	require.NoError(t, err)
	h := newHarness(t, next, nil)
	require.NoError(t, h.Start(t.Context(), componenttest.NewNopHost()))
	h.requireRunning(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = h.fake.next.ConsumeProfiles(ctx, report()) }()
	<-arrived
	cancel()
	stopped := make(chan error)
	go func() { stopped <- h.Shutdown(context.Background()) }()
	require.Eventually(t, func() bool {
		h.consumer.mu.Lock()
		defer h.consumer.mu.Unlock()
		return h.consumer.isClosed
	}, waitTimeout, time.Millisecond)
	require.NoError(t, h.fake.next.ConsumeProfiles(t.Context(), report()), "shut")
	close(leave)
	require.NoError(t, <-stopped)
	require.EqualValues(t, 1, seen.Load())
	require.EqualValues(t, 1, collectortest.Sum(t, h.telemetry, "otelcol_receiver_accepted_profile_samples"))
}

// A report that the pipeline refuses is counted, and refusals are logged once.
func TestRefused(t *testing.T) {
	h := newHarness(t, consumertest.NewErr(errors.New("data refused due to high memory usage")), nil)
	for range 3 {
		require.NoError(t, h.consumer.ConsumeProfiles(t.Context(), report()))
	}
	require.Equal(t, 1, h.log.FilterMessageSnippet("refused a report").Len())
	require.EqualValues(t, 3, collectortest.Sum(t, h.telemetry, "otelcol_receiver_refused_profile_samples"))
	require.NoError(t, h.Shutdown(t.Context()))
}

// The pipeline has at most its timeout for a report.
func TestConsumeTimeout(t *testing.T) {
	next, err := xconsumer.NewProfiles(func(ctx context.Context, _ pprofile.Profiles) error {
		<-ctx.Done()
		return ctx.Err()
	}, consumer.WithCapabilities(consumer.Capabilities{}))
	require.NoError(t, err)
	h := newHarness(t, next, nil)
	h.consumer.timeout = time.Millisecond
	require.NoError(t, h.consumer.ConsumeProfiles(t.Context(), report()))
	require.Equal(t, 1, h.log.FilterMessageSnippet("refused a report").Len())
}

func TestLogIsLimited(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	logger := limitLog(zap.New(core, zap.AddStacktrace(zap.ErrorLevel)))
	for i := range 100 {
		logger.With(zap.Int("process", i)).Error("cannot be read")
	}
	require.Equal(t, logLines, lines.Len())
	assert.Empty(t, lines.All()[0].Stack)
	assert.Contains(t, lines.All()[logLines-1].ContextMap(), "suppressing_more_for")

	core, lines = observer.New(zap.InfoLevel)
	logger = limitLog(zap.New(core))
	logger.Error(
		"Failed to load /bin/otelcol-profiles (0x00000000002a1b3c): unsupported Go version go1.26.8 (need >= 1.13 and <= 1.25)")
	logger.Error("Failed to load /bin/otelcol-profiles (0x00000000002a1b3c): unexpected EOF")
	require.Equal(t, 1, lines.Len(), "frames of Go do not depend on the version")

	for range 100 {
		logger.Info("starts once")
	}
	require.Equal(t, 100, lines.FilterMessage("starts once").Len())

	core, lines = observer.New(zap.DebugLevel)
	logger = limitLog(zap.New(core))
	for range 100 {
		logger.Info("all of them")
	}
	require.Equal(t, 100, lines.Len())
}

func report() pprofile.Profiles {
	profiles := pprofile.NewProfiles()
	profiles.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().
		AppendEmpty()
	return profiles
}
