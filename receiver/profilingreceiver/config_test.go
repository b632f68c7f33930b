// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package profilingreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

func TestConfig(t *testing.T) {
	for want, yaml := range map[string]map[string]any{
		"sample_per_second": {"sample_per_second": 20},
		"`reporter_interval` must be positive, found 0s":   {"reporter_interval": "0s"},
		"`monitor_interval` must be positive, found -1s":   {"monitor_interval": "-1s"},
		"`clock_sync_interval` must be positive, found 0s": {"clock_sync_interval": 0},
		"reporter-jitter": {"reporter_jitter": 2},
		"`samples_per_second` must be from 1 to 1000, found 0":    {"samples_per_second": 0},
		"`samples_per_second` must be from 1 to 1000, found 2000": {"samples_per_second": 2000},
		"probabilistic-interval":                                  {"probabilistic_interval": "1s"},
		"off-cpu-threshold":                                       {"off_cpu_threshold": -1},
		"frame cache size":                                        {"frame_cache_size": 1},
		"tracers":                                                 {"tracers": "all"},
		"cobol":                                                   {"interpreters": map[string]any{"cobol": map[string]any{}}},
		"`on_unavailable` must be retry or fail, found \"ignore\"": {"on_unavailable": "ignore"},
	} {
		_, err := collectortest.LoadConfig(createDefaultConfig().(*Config), yaml)
		require.ErrorContains(t, err, want)
	}
}
