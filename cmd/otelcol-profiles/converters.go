// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go.opentelemetry.io/collector/otelcol"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// addConverters adds what reads a configuration before any component is made. run calls it, on Windows by a line that
// `make generate` inserts.
func addConverters(set *otelcol.CollectorSettings) *config.Values {
	values := &config.Values{}
	converters := &set.ConfigProviderSettings.ResolverSettings.ConverterFactories
	*converters = append(*converters, config.NewTelemetryFactory(), budget.NewConverterFactory(), values.Factory())
	return values
}
