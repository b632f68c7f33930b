// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"

	"go.opentelemetry.io/collector/confmap"
)

// NewTelemetryFactory returns a factory of a converter that adds the distribution's defaults of service::telemetry, key
// by key, to what a configuration has there:
//   - log lines for people, without the position in the code, the collector's own resource and stack traces;
//   - the collector's own metrics for Prometheus at METRICS_HOST (localhost) and METRICS_PORT (8888), with the names
//     that config/monitoring has.
//
// It is called before configurations are read, and unsets the variables of folders that are empty: otherwise each would
// be the root of the file system instead of its default.
func NewTelemetryFactory() confmap.ConverterFactory {
	for _, name := range folders {
		if os.Getenv(name) == "" {
			_ = os.Unsetenv(name) // it is a valid name
		}
	}
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return telemetry{} })
}

type telemetry struct{}

// folders are the environment variables to which configurations append the name of a file or folder.
var folders = []string{"CONFIG_FOLDER", "PROFILES_OUT", "QUEUE_DIRECTORY", "STORE_DIRECTORY"}

// Convert is called with the whole configuration, after its environment variables have been replaced.
func (telemetry) Convert(_ context.Context, conf *confmap.Conf) error {
	port, err := strconv.ParseUint(cmp.Or(os.Getenv("METRICS_PORT"), "8888"), 10, 16)
	if err != nil {
		return fmt.Errorf("the environment variable METRICS_PORT must be a port: %w", err)
	}
	prometheus := map[string]any{"host": cmp.Or(os.Getenv("METRICS_HOST"), "localhost"), "port": int(port)}
	missing := map[string]any{}
	for key, value := range map[string]any{
		"logs::disable_caller": true, "logs::disable_zap_resource": true, "logs::disable_stacktrace": true,
		"metrics::readers": []any{
			map[string]any{"pull": map[string]any{"exporter": map[string]any{"prometheus": prometheus}}}},
	} {
		if key = "service::telemetry::" + key; !conf.IsSet(key) {
			missing[key] = value
		}
	}
	return conf.Merge(confmap.NewFromStringMap(missing))
}
