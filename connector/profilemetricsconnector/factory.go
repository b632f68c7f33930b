// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/metadata"
)

// NewFactory returns the factory of the connector `profile_metrics`, from profiles to metrics.
func NewFactory() connector.Factory {
	return xconnector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xconnector.WithProfilesToMetrics(createProfilesToMetrics, metadata.ProfilesToMetricsStability),
	)
}

// createDefaultConfig is the only place for defaults; a test compares the README with them.
func createDefaultConfig() component.Config {
	return &Config{
		Interval:           time.Minute,
		Temporality:        temporalityCumulative,
		ResourceAttributes: []string{"service.namespace", serviceName},
		MaxSeries:          10_000,
		MaxBytes:           16 << 20,
		SeriesExpiry:       time.Hour,
	}
}

func createProfilesToMetrics(_ context.Context, set connector.Settings, cfg component.Config,
	next consumer.Metrics) (xconnector.Profiles, error) {
	return newConnector(set, cfg.(*Config), next, time.Now)
}
