// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilingreceiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/await"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shutdown"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/profilingreceiver/internal/metadata"
)

// slot has a token while a profiler runs. A process can have only one: the profiler's logger, metrics and clock are
// global.
var slot = make(chan struct{}, 1)

// maxRetry bounds the time between two attempts to start the profiler.
const maxRetry = 5 * time.Minute

// profilingReceiver starts the profiler, retrying if it cannot start, and stops it.
type profilingReceiver struct {
	cfg      *Config
	set      receiver.Settings
	consumer *reportConsumer
	metrics  *metadata.TelemetryBuilder

	// check and create are checkMachine and createProfiler, except in tests.
	check  func(*Config) problems
	create func(context.Context, receiver.Settings, *ProfilerConfig, xconsumer.Profiles) (component.Component, error)
	// settleTime passes between the end of a profiler and the start of the next one: the goroutines of the first run on
	// for a moment after Shutdown, and share tables without locks with the next.
	settleTime time.Duration
	// slotWait is how long a start waits for another receiver to end, for example when the configuration is reloaded.
	slotWait time.Duration
	// firstRetry passes between the first failed start and the next attempt. The time doubles up to maxRetry.
	firstRetry time.Duration

	stop context.CancelFunc
	// done is closed when the profiler has stopped.
	done chan struct{}
}

func newReceiver(set receiver.Settings, cfg *Config, next xconsumer.Profiles) (*profilingReceiver, error) {
	metrics, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: "ebpf", ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	return &profilingReceiver{
		cfg: cfg, set: set, metrics: metrics, check: checkMachine, create: createProfiler,
		settleTime: time.Second, slotWait: 3 * time.Second, firstRetry: 10 * time.Second,
		consumer: &reportConsumer{next: next, obsreport: obsreport, timeout: 30 * time.Second, refusals: telemetry.Changes{
			Logger: set.Logger,
			Failed: "the pipeline refused a report of the eBPF profiler, and its samples are lost; suppressing repeats until the error changes",
		}},
	}, nil
}

// Start starts the profiler. With `on_unavailable: retry` it returns at once.
func (r *profilingReceiver) Start(_ context.Context, host component.Host) error {
	// The profiler uses its context as long as it runs, which is longer than Start's.
	ctx, stop := context.WithCancel(context.Background())
	r.stop, r.done = stop, make(chan struct{})
	r.metrics.ReceiverProfilingRunning.Record(ctx, 0)
	var profiler component.Component
	if r.cfg.OnUnavailable == onUnavailableFail {
		var err error
		if profiler, err = r.attempt(ctx, host); err != nil {
			close(r.done)
			return fmt.Errorf("eBPF profiling cannot start: %w", err)
		}
	}
	go func() {
		defer close(r.done)
		if profiler == nil {
			profiler = r.startEventually(ctx, host)
		}
		if profiler != nil {
			r.keep(ctx, profiler)
		}
	}()
	return nil
}

// startEventually returns the profiler when it has started, or nil if ctx ends first.
func (r *profilingReceiver) startEventually(ctx context.Context, host component.Host) component.Component {
	failures := telemetry.Changes{
		Logger: r.set.Logger,
		Failed: "eBPF profiling cannot start; retrying while everything else goes on; suppressing repeats until the error changes",
	}
	for wait := r.firstRetry; ; wait = min(2*wait, maxRetry) {
		profiler, err := r.attempt(ctx, host)
		if err == nil {
			if failures.Note("", nil) {
				componentstatus.ReportStatus(host, componentstatus.NewEvent(componentstatus.StatusOK))
			}
			return profiler
		}
		if failures.Note(err.Error(), err, zap.Duration("retry_after", wait)) {
			componentstatus.ReportStatus(host, componentstatus.NewRecoverableErrorEvent(err))
		}
		if !await.Sleep(ctx, wait) {
			return nil
		}
	}
}

// attempt starts the profiler, or returns an error with everything that it lacks.
func (r *profilingReceiver) attempt(ctx context.Context, host component.Host) (component.Component, error) {
	profiler, err := r.startAlone(ctx, host)
	if err != nil {
		why := reasonOther
		if found, ok := errors.AsType[problems](err); ok {
			why = found.reason()
		}
		r.metrics.ReceiverProfilingFailedStarts.Add(ctx, 1, telemetry.Attributes("reason", string(why)))
		return nil, err
	}
	r.metrics.ReceiverProfilingRunning.Record(ctx, 1)
	r.set.Logger.Info("eBPF profiling runs")
	return profiler, nil
}

// startAlone starts the profiler once no other one runs in this process.
func (r *profilingReceiver) startAlone(ctx context.Context, host component.Host) (component.Component, error) {
	select {
	case slot <- struct{}{}:
	case <-time.After(r.slotWait):
		return nil, problems{{reasonBusy,
			fmt.Sprintf("another `profiling` receiver runs in this process, which can have only one: "+
				"list %s in several pipelines instead of configuring two", r.set.ID)}}
	}
	profiler, err := r.startProfiler(ctx, host)
	if err != nil {
		r.releaseSlot()
	}
	return profiler, err
}

func (r *profilingReceiver) startProfiler(ctx context.Context, host component.Host) (component.Component, error) {
	if !r.cfg.SkipChecks {
		if found := r.check(r.cfg); len(found) > 0 {
			return nil, found
		}
	}
	set := r.set
	set.Logger = limitLog(set.Logger)
	profiler, err := r.create(ctx, set, &r.cfg.Profiler, r.consumer)
	if err != nil {
		return nil, fmt.Errorf("create the eBPF profiler: %w", err)
	}
	if err := profiler.Start(ctx, host); err != nil {
		// Start does not clean up when it fails.
		if stopErr := profiler.Shutdown(ctx); stopErr != nil {
			r.set.Logger.Warn("the eBPF profiler did not shut down cleanly", zap.Error(stopErr))
		}
		return nil, fmt.Errorf("start the eBPF profiler: %w", err)
	}
	return profiler, nil
}

// keep stops the profiler when ctx ends.
func (r *profilingReceiver) keep(ctx context.Context, profiler component.Component) {
	<-ctx.Done()
	if err := profiler.Shutdown(context.WithoutCancel(ctx)); err != nil {
		r.set.Logger.Warn("the eBPF profiler did not shut down cleanly", zap.Error(err))
	}
	r.metrics.ReceiverProfilingRunning.Record(context.WithoutCancel(ctx), 0)
	r.releaseSlot()
}

func (r *profilingReceiver) releaseSlot() { time.AfterFunc(r.settleTime, func() { <-slot }) }

// Shutdown stops the profiler and waits for a report that is under way.
func (r *profilingReceiver) Shutdown(ctx context.Context) error {
	if r.stop == nil {
		return nil
	}
	r.stop()
	ctx, cancel := shutdown.Deadline(ctx)
	defer cancel()
	defer r.metrics.Shutdown()
	select {
	case <-r.done:
	case <-ctx.Done():
		_ = r.consumer.close(ctx)
		return fmt.Errorf("stop the eBPF profiler: %w", ctx.Err())
	}
	if err := r.consumer.close(ctx); err != nil {
		return fmt.Errorf("deliver the eBPF profiler's last report: %w", err)
	}
	return nil
}
