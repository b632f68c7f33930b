// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hostdetectionprocessor

import (
	"slices"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// Config is the processor's configuration: a part of that of contrib's processor of the same type.
type Config struct {
	// Detectors are run in this order; what an earlier one found stays.
	Detectors []string `mapstructure:"detectors"`
	// Override lets detected attributes replace those of the sender.
	Override bool `mapstructure:"override"`
	// System configures the detector `system`.
	System SystemConfig `mapstructure:"system"`
}

// SystemConfig configures the detector `system`.
type SystemConfig struct {
	// HostnameSources must be `[os]` if the detector is used.
	HostnameSources []string `mapstructure:"hostname_sources"`
}

func createDefaultConfig() component.Config {
	return &Config{Detectors: []string{"env"}, Override: true, System: SystemConfig{HostnameSources: []string{}}}
}

// Validate reports what contrib's processor has and this one lacks.
func (c *Config) Validate() error {
	var faults config.Faults
	for i, name := range c.Detectors {
		faults.Require(detectors[name] != nil,
			"`detectors[%d]` must be env or system, found %q: contrib's processor has the others, see builder-config.yaml", i,
			name)
	}
	// By default contrib's processor asks DNS first. The same configuration must not result in another host name here.
	sources := c.System.HostnameSources
	faults.Require(!slices.Contains(c.Detectors, "system") || slices.Equal(sources, []string{"os"}),
		"`system.hostname_sources` must be [os], found %q: contrib's processor, see builder-config.yaml, also asks DNS, and does so by default", sources)
	return faults.Err()
}
