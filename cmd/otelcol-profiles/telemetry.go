// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package main

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/service/telemetry"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// lastTelemetry is how long the last metrics, traces or logs of the collector itself may take to be sent.
const lastTelemetry = 2 * time.Second

// lenient returns a factory whose telemetry always stops in time and without an error: what cannot be sent is logged.
// An error would end the collector when its configuration is reloaded while the backend of its metrics is away.
func lenient(f telemetry.Factory) telemetry.Factory {
	return telemetry.NewFactory(f.CreateDefaultConfig, telemetry.WithCreateResource(f.CreateResource),
		telemetry.WithCreateLogger(func(ctx context.Context, set telemetry.LoggerSettings,
			cfg component.Config) (*zap.Logger, component.ShutdownFunc, error) {
			logger, shutdown, err := f.CreateLogger(ctx, set, cfg)
			return logger, stopLeniently("logs", logger, shutdown), err
		}),
		telemetry.WithCreateMeterProvider(func(ctx context.Context, set telemetry.MeterSettings,
			cfg component.Config) (telemetry.MeterProvider, error) {
			p, err := f.CreateMeterProvider(ctx, set, cfg)
			if err != nil {
				return nil, err
			}
			return meterProvider{p, stopLeniently("metrics", set.Logger, p.Shutdown)}, nil
		}),
		telemetry.WithCreateTracerProvider(func(ctx context.Context, set telemetry.TracerSettings,
			cfg component.Config) (telemetry.TracerProvider, error) {
			p, err := f.CreateTracerProvider(ctx, set, cfg)
			if err != nil {
				return nil, err
			}
			return tracerProvider{p, stopLeniently("traces", set.Logger, p.Shutdown)}, nil
		}))
}

func stopLeniently(what string, logger *zap.Logger, shutdown component.ShutdownFunc) component.ShutdownFunc {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, lastTelemetry)
		defer cancel()
		if err := shutdown.Shutdown(ctx); err != nil {
			logger.Warn("cannot send the last of the collector's own "+what, zap.Error(err))
		}
		return nil
	}
}

type meterProvider struct {
	metric.MeterProvider
	component.ShutdownFunc
}

type tracerProvider struct {
	trace.TracerProvider
	component.ShutdownFunc
}

// Unwrap returns the provider of the SDK, which components may look for.
func (p tracerProvider) Unwrap() trace.TracerProvider { return p.TracerProvider }
