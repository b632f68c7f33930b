// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package profilingreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/ebpf-profiler/collector"
	profiler "go.opentelemetry.io/ebpf-profiler/collector/config"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// ProfilerConfig is the profiler's own configuration. It is a type without methods, so that the Collector does not call
// the profiler's Validate, which refuses a configuration because of the machine that reads it.
type ProfilerConfig profiler.Config

func defaultProfilerConfig() ProfilerConfig {
	return ProfilerConfig(*collector.NewFactory().CreateDefaultConfig().(*profiler.Config))
}

// check reports values that the profiler refuses, and those with which it panics.
func (p ProfilerConfig) check() error {
	var faults config.Faults
	for key, interval := range map[string]time.Duration{
		"reporter_interval": p.ReporterInterval, "monitor_interval": p.MonitorInterval,
		"clock_sync_interval": p.ClockSyncInterval,
	} {
		faults.Require(interval > 0, "`%s` must be positive, found %v", key, interval)
	}
	faults.Require(p.SamplesPerSecond > 0 && p.SamplesPerSecond <= 1000,
		"`samples_per_second` must be from 1 to 1000, found %d", p.SamplesPerSecond)
	own := profiler.Config(p)
	own.NoKernelVersionCheck = true
	faults.Add(own.Validate())
	return faults.Err()
}

// needsKprobes reports whether something is switched on that the profiler attaches to functions of the kernel.
func (p *ProfilerConfig) needsKprobes() bool {
	return p.OffCPUThreshold > 0 || p.LoadProbe || len(p.Probes) > 0
}

func createProfiler(ctx context.Context, set receiver.Settings, cfg *ProfilerConfig,
	next xconsumer.Profiles) (component.Component, error) {
	own := profiler.Config(*cfg)
	own.ErrorMode = profiler.PropagateError // `on_unavailable` decides what an error means
	if err := own.Validate(); err != nil {  // it also reads `pin_cpu_ids`
		return nil, err
	}
	return collector.BuildProfilesReceiver()(ctx, set, &own, next)
}
