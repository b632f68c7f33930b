// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package profilingreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/ebpf-profiler/collector"
	"go.opentelemetry.io/ebpf-profiler/collector/config"
	"go.opentelemetry.io/ebpf-profiler/tracer"
)

func checkProbeLink(link string) error {
	_, err := tracer.ParseProbe(link)
	return err
}

func createProfiler(ctx context.Context, set receiver.Settings, cfg *ProfilerConfig, next xconsumer.Profiles) (component.Component, error) {
	own := config.Config(*cfg)
	return collector.BuildProfilesReceiver()(ctx, set, &own, next)
}
