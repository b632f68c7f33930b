// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

func load(section map[string]any) (*Config, error) {
	return collectortest.LoadConfig(createDefaultConfig().(*Config), section)
}

func TestConfig(t *testing.T) {
	cfg, err := load(map[string]any{
		"mode": "always", "grpc": map[string]any{"endpoint": "backend:4317"}, "format": "otlp", "recheck_interval": "1m",
		"max_record_bytes": 2000, "sending_queue": map[string]any{"queue_size": 7},
		"retry_on_failure": map[string]any{"enabled": false}, "timeout": "3s",
	})
	require.NoError(t, err)
	assert.Equal(t, "backend:4317", cfg.GRPC.Get().Endpoint)
	assert.Equal(t, "gzip", string(cfg.GRPC.Get().Compression))
	assert.False(t, cfg.HTTP.HasValue())
	assert.Equal(t, int64(7), cfg.Queue.Get().QueueSize)
	assert.Equal(t, time.Minute, cfg.RecheckInterval)

	cfg, err = load(map[string]any{"http": map[string]any{"endpoint": "https://backend:4318/",
		"logs_endpoint": "https://logs/in"}})
	require.NoError(t, err)
	assert.Equal(t, "gzip", string(cfg.HTTP.Get().Client.Compression))
	profiles, logs := cfg.HTTP.Get().urls()
	assert.Equal(t, "https://backend:4318/v1development/profiles", profiles)
	assert.Equal(t, "https://logs/in", logs)

	_, err = load(map[string]any{"http": map[string]any{"profiles_endpoint": "https://profiles/in",
		"logs_endpoint": "https://logs/in"}})
	require.NoError(t, err)
}

func TestConfigFaults(t *testing.T) {
	grpc := map[string]any{"endpoint": "backend:4317"}
	for want, raw := range map[string]map[string]any{
		"one of `grpc`, `http` and `hec` must be configured, found 0": {},
		"one of `grpc`, `http` and `hec` must be configured, found 2": {"grpc": grpc,
			"http": map[string]any{"endpoint": "http://backend:4318"}},
		"grpc: `endpoint` must be set":                       {"grpc": map[string]any{}},
		"`mode` must be fallback or always, found \"never\"": {"grpc": grpc, "mode": "never"},
		"`recheck_interval` must be positive, found 0s":      {"grpc": grpc, "recheck_interval": 0},
		"`max_retry_after` must be positive, found -1s": {"grpc": grpc,
			"max_retry_after": "-1s"},
		"`max_request_bytes` must be at least 16384, found 100": {"grpc": grpc,
			"max_request_bytes": 100},
		"`max_request_bytes` must be at least 16384, found 1": {
			"hec": map[string]any{"endpoint": "https://splunk:8088", "token": "x", "max_request_bytes": 1}},
		"`timeout` must not be negative, found -1s": {"grpc": grpc, "timeout": "-1s"},
		"`format` must be pprof or otlp":            {"grpc": grpc, "format": "jfr"},
		"`endpoint` must be set, or both": {
			"http": map[string]any{"logs_endpoint": "http://logs"}},
		"`endpoint` must be an http or https URL with a host, found \"backend:4318\"": {
			"http": map[string]any{"endpoint": "backend:4318"}},
		"invalid keys: logs_endpoints": {"http": map[string]any{"endpoint": "http://backend", "logs_endpoints": "x"}},
		"has invalid keys: heck":       {"grpc": grpc, "heck": map[string]any{}},
		"`token` must be set":          {"hec": map[string]any{"endpoint": "https://splunk:8088/services/collector"}},
		"invalid keys: tokens": {"hec": map[string]any{"endpoint": "https://splunk:8088/services/collector",
			"tokens": "x"}},
		"found \"splunk\"": {"hec": map[string]any{"endpoint": "splunk", "token": "x"}},
	} {
		_, err := load(raw)
		assert.ErrorContains(t, err, want)
	}
}
