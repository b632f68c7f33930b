// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux || !(amd64 || arm64)

package profilingreceiver

import (
	"context"
	"errors"
	"runtime"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
)

// ProfilerConfig has the profiler's keys unread: its packages compile for Linux alone.
type ProfilerConfig struct {
	Keys map[string]any `mapstructure:",remain"`
}

func defaultProfilerConfig() (none ProfilerConfig) { return none }

func (ProfilerConfig) check() error { return nil }

func checkMachine(*Config) problems {
	return problems{{reasonPlatform, "the profiler is for Linux on amd64 and arm64, and this is " + runtime.GOOS + " on " +
		runtime.GOARCH +
		": take the receiver `profiling` out of the configuration"}}
}

func createProfiler(
	context.Context, receiver.Settings, *ProfilerConfig, xconsumer.Profiles,
) (component.Component, error) {
	return nil, errors.New("not for this platform")
}
