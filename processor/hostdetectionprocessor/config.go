// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hostdetectionprocessor

import (
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/component"
)

// The detectors that the slim build has.
const (
	detectorEnv    = "env"
	detectorSystem = "system"
)

const hostnameFromOS = "os"

// Config is the processor's configuration: a part of that of contrib's processor of the same type.
type Config struct {
	// Detectors are run in this order; what an earlier one found stays.
	Detectors []string `mapstructure:"detectors"`
	// Override says that what was detected replaces what a sender says of itself.
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
	return &Config{Detectors: []string{detectorEnv}, Override: true, System: SystemConfig{HostnameSources: []string{}}}
}

// Validate reports everything that the slim build lacks.
func (c *Config) Validate() error {
	var errs []error
	for i, name := range c.Detectors {
		if name != detectorEnv && name != detectorSystem {
			errs = append(errs, fmt.Errorf("`detectors[%d]` must be env or system in the slim build, found %q: the full build of otelcol-profiles has the others", i, name))
		}
	}
	// The full build asks DNS first where nothing is set. The same configuration must not name a host otherwise here.
	if sources := c.System.HostnameSources; slices.Contains(c.Detectors, detectorSystem) && !slices.Equal(sources, []string{hostnameFromOS}) {
		errs = append(errs, fmt.Errorf("`system::hostname_sources` must be [os] in the slim build, found %q: the full build of otelcol-profiles also asks DNS, and does so by default", sources))
	}
	return errors.Join(errs...)
}
