// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilingreceiver

import (
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// Config configures the receiver.
type Config struct {
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

// tracers are the names that `tracers` may list.
var tracers = []string{"perl", "php", "python", "hotspot", "ruby", "v8", "dotnet", "go", "labels", "beam"}

// ProfilerConfig has the fields of the profiler's own configuration, in their order, so that one converts to the other.
// It is repeated here because the profiler's packages compile for Linux only, but configurations are read everywhere.
type ProfilerConfig struct {
	ReporterInterval       time.Duration `mapstructure:"reporter_interval"`
	ReporterJitter         float64       `mapstructure:"reporter_jitter"`
	MonitorInterval        time.Duration `mapstructure:"monitor_interval"`
	SamplesPerSecond       int           `mapstructure:"samples_per_second"`
	ProbabilisticInterval  time.Duration `mapstructure:"probabilistic_interval"`
	ProbabilisticThreshold uint          `mapstructure:"probabilistic_threshold"`
	Tracers                string        `mapstructure:"tracers"`
	ClockSyncInterval      time.Duration `mapstructure:"clock_sync_interval"`
	SendErrorFrames        bool          `mapstructure:"send_error_frames"`
	SendIdleFrames         bool          `mapstructure:"send_idle_frames"`
	VerboseMode            bool          `mapstructure:"verbose_mode"`
	OffCPUThreshold        float64       `mapstructure:"off_cpu_threshold"`
	IncludeEnvVars         string        `mapstructure:"include_env_vars"`
	ProbeLinks             []string      `mapstructure:"probe_links"`
	LoadProbe              bool          `mapstructure:"load_probe"`
	MapScaleFactor         uint          `mapstructure:"map_scale_factor"`
	BPFVerifierLogLevel    uint          `mapstructure:"bpf_verifier_log_level"`
	NoKernelVersionCheck   bool          `mapstructure:"no_kernel_version_check"`
	MaxGRPCRetries         uint32        `mapstructure:"max_grpc_retries"`
	MaxRPCMsgSize          int           `mapstructure:"max_rpc_msg_size"`
}

// createDefaultConfig is the only place for defaults; a test compares the README with it. The profiler's keys have the
// profiler's defaults.
func createDefaultConfig() component.Config {
	return &Config{
		Profiler: ProfilerConfig{
			ReporterInterval:       5 * time.Second,
			ReporterJitter:         0.2,
			MonitorInterval:        5 * time.Second,
			SamplesPerSecond:       20,
			ProbabilisticInterval:  time.Minute,
			ProbabilisticThreshold: 100,
			Tracers:                "all",
			ClockSyncInterval:      3 * time.Minute,
			MaxGRPCRetries:         5,
			MaxRPCMsgSize:          32 << 20,
		},
		OnUnavailable: onUnavailableRetry,
	}
}

// Validate reports everything that is wrong at once. It does not check whether this machine can be profiled: the
// receiver does so when it starts.
func (c *Config) Validate() error {
	var faults config.Faults
	require := func(ok bool, key, bound string, found any) {
		faults.Require(ok, "`%s` must be %s, found %v", key, bound, found)
	}
	p := &c.Profiler
	require(p.ReporterInterval > 0, "reporter_interval", "positive", p.ReporterInterval)
	require(p.MonitorInterval > 0, "monitor_interval", "positive", p.MonitorInterval)
	require(p.ClockSyncInterval > 0, "clock_sync_interval", "positive", p.ClockSyncInterval)
	require(p.ReporterJitter >= 0 && p.ReporterJitter <= 1, "reporter_jitter", "0 to 1", p.ReporterJitter)
	require(p.SamplesPerSecond >= 1 && p.SamplesPerSecond <= 1000, "samples_per_second", "1 to 1000", p.SamplesPerSecond)
	require(p.ProbabilisticInterval >= time.Minute && p.ProbabilisticInterval <= 5*time.Minute,
		"probabilistic_interval", "1m to 5m", p.ProbabilisticInterval)
	require(p.ProbabilisticThreshold >= 1 && p.ProbabilisticThreshold <= 100, "probabilistic_threshold", "1 to 100", p.ProbabilisticThreshold)
	require(p.OffCPUThreshold >= 0 && p.OffCPUThreshold <= 1, "off_cpu_threshold", "0 to 1", p.OffCPUThreshold)
	require(p.MapScaleFactor <= 8, "map_scale_factor", "0 to 8", p.MapScaleFactor)
	require(p.BPFVerifierLogLevel <= 2, "bpf_verifier_log_level", "0 to 2", p.BPFVerifierLogLevel)
	for name := range strings.SplitSeq(p.Tracers, ",") {
		name = strings.TrimSpace(name)
		faults.Require(name == "all" || slices.Contains(tracers, name),
			"`tracers` must be all or a list of %s, found %q", strings.Join(tracers, ","), name)
	}
	for _, link := range p.ProbeLinks {
		err := checkProbeLink(link)
		faults.Require(err == nil, "`probe_links` has %q: %w", link, err)
	}
	faults.Require(c.OnUnavailable == onUnavailableRetry || c.OnUnavailable == onUnavailableFail,
		"`on_unavailable` must be %s or %s, found %q", onUnavailableRetry, onUnavailableFail, c.OnUnavailable)
	return faults.Err()
}
