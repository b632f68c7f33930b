// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilingreceiver

import (
	"errors"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// Config configures the receiver.
type Config struct {
	// Profiler has the profiler's own keys.
	Profiler ProfilerConfig `mapstructure:",squash"`
	// OnUnavailable is what happens if the profiler cannot start: onUnavailableRetry or onUnavailableFail.
	OnUnavailable string `mapstructure:"on_unavailable"`
	// SkipChecks starts the profiler without checking first whether it can work.
	SkipChecks bool `mapstructure:"skip_checks"`
}

const (
	onUnavailableRetry = "retry"
	onUnavailableFail  = "fail"
)

// createDefaultConfig is the only place for defaults; a test compares the README with it. The profiler's keys have the
// profiler's defaults.
func createDefaultConfig() component.Config {
	return &Config{Profiler: defaultProfilerConfig(), OnUnavailable: onUnavailableRetry}
}

// Validate reports everything that is wrong at once. It does not check whether this machine can be profiled: the
// receiver does so when it starts.
func (c *Config) Validate() error {
	var faults config.Faults
	faults.Require(c.OnUnavailable == onUnavailableRetry || c.OnUnavailable == onUnavailableFail,
		"`on_unavailable` must be %s or %s, found %q", onUnavailableRetry, onUnavailableFail, c.OnUnavailable)
	return errors.Join(c.Profiler.check(), faults.Err())
}
