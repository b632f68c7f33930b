// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/metadata"
)

// NewFactory returns the factory of the processor `symbolize`, for profiles pipelines.
func NewFactory() processor.Factory {
	return xprocessor.NewFactory(metadata.Type, createDefaultConfig,
		xprocessor.WithProfiles(createProfiles, metadata.ProfilesStability))
}

func createProfiles(_ context.Context, set processor.Settings, cfg component.Config,
	next xconsumer.Profiles) (xprocessor.Profiles, error) {
	return newProcessor(set, cfg.(*Config), next)
}
