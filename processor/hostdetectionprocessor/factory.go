// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hostdetectionprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/otelcol-profiles/otelcol-profiles/processor/hostdetectionprocessor/internal/metadata"
)

// contribAlias is the other name of contrib's processor.
var contribAlias = component.MustNewType("resourcedetection")

// NewFactory returns the factory of the processor `resource_detection`, for profiles pipelines.
func NewFactory() processor.Factory {
	return xprocessor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		xprocessor.WithDeprecatedTypeAlias(contribAlias),
		xprocessor.WithProfiles(createProfiles, metadata.ProfilesStability),
	)
}

func createProfiles(_ context.Context, _ processor.Settings, cfg component.Config, next xconsumer.Profiles) (xprocessor.Profiles, error) {
	return &hostDetection{cfg: cfg.(*Config), next: next}, nil
}
