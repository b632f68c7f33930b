// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// What a configuration has stays, and the defaults join it.
func TestTelemetryDefaults(t *testing.T) {
	reader := func(host string, port int) any {
		return []any{
			map[string]any{
				"pull": map[string]any{"exporter": map[string]any{"prometheus": map[string]any{"host": host, "port": port}}}}}
	}
	logs := map[string]any{"disable_caller": true, "disable_zap_resource": true, "disable_stacktrace": true}
	own := []any{map[string]any{"periodic": map[string]any{"interval": 1000}}}
	for name, tt := range map[string]struct {
		env       map[string]string
		conf      map[string]any
		telemetry map[string]any
	}{
		"none": {nil, map[string]any{"service": map[string]any{"pipelines": nil}},
			map[string]any{"logs": logs, "metrics": map[string]any{"readers": reader("localhost", 8888)}}},
		"variable": {map[string]string{"METRICS_HOST": "::", "METRICS_PORT": "1"}, nil,
			map[string]any{"logs": logs, "metrics": map[string]any{"readers": reader("::", 1)}}},
		"own": {nil, map[string]any{"service": map[string]any{"telemetry": map[string]any{
			"logs":    map[string]any{"level": "debug", "disable_caller": false},
			"metrics": map[string]any{"readers": own, "level": "detailed"}, "traces": nil,
		}}}, map[string]any{
			"logs": map[string]any{"level": "debug", "disable_caller": false, "disable_zap_resource": true,
				"disable_stacktrace": true},
			"metrics": map[string]any{"readers": own, "level": "detailed"}, "traces": nil,
		}},
		"empty sections": {nil,
			map[string]any{"service": map[string]any{"telemetry": map[string]any{"logs": nil, "metrics": nil}}},
			map[string]any{"logs": logs, "metrics": map[string]any{"readers": reader("localhost", 8888)}}},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range tt.env {
				t.Setenv(key, value)
			}
			conf := confmap.NewFromStringMap(tt.conf)
			require.NoError(t, telemetry{}.Convert(t.Context(), conf))
			assert.Equal(t, tt.telemetry, conf.ToStringMap()["service"].(map[string]any)["telemetry"])
		})
	}
	t.Setenv("METRICS_PORT", "http")
	require.ErrorContains(t, telemetry{}.Convert(t.Context(), confmap.New()), "METRICS_PORT must be a port")
}
