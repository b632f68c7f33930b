// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilingreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

func TestConfig(t *testing.T) {
	require.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	require.NoError(t, createDefaultConfig().(*Config).Validate())
	for want, yaml := range map[string]map[string]any{
		"sample_per_second": {"sample_per_second": 20},
		"`reporter_interval` must be positive, found 0s":           {"reporter_interval": "0s"},
		"`monitor_interval` must be positive, found -1s":           {"monitor_interval": "-1s"},
		"`clock_sync_interval` must be positive, found 0s":         {"clock_sync_interval": 0},
		"`reporter_jitter` must be 0 to 1, found 2":                {"reporter_jitter": 2},
		"`samples_per_second` must be 1 to 1000, found 0":          {"samples_per_second": 0},
		"`probabilistic_interval` must be 1m to 5m, found 1s":      {"probabilistic_interval": "1s"},
		"`probabilistic_threshold` must be 1 to 100, found 0":      {"probabilistic_threshold": 0},
		"`off_cpu_threshold` must be 0 to 1, found -1":             {"off_cpu_threshold": -1},
		"`map_scale_factor` must be 0 to 8, found 9":               {"map_scale_factor": 9},
		"`bpf_verifier_log_level` must be 0 to 2, found 3":         {"bpf_verifier_log_level": 3},
		"`tracers` must be all or a list of perl,php,":             {"tracers": "python,cobol"},
		"`on_unavailable` must be retry or fail, found \"ignore\"": {"on_unavailable": "ignore"},
	} {
		_, err := collectortest.LoadConfig(createDefaultConfig().(*Config), yaml)
		require.ErrorContains(t, err, want)
	}
}
