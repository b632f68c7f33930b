// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproffileexporter

import (
	"time"

	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// Config configures the exporter.
type Config struct {
	Directory string `mapstructure:"directory"`
	// Name is a path below Directory. {profile}, {time}, {instance} and the keys of resource attributes in braces are
	// replaced.
	Name string `mapstructure:"name"`
	// MaxAge and MaxBytes bound the files that Name describes; the oldest are deleted. 0 is no limit.
	MaxAge   time.Duration `mapstructure:"max_age"`
	MaxBytes int64         `mapstructure:"max_bytes"`

	Queue configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	Retry configretry.BackOffConfig                                `mapstructure:"retry_on_failure"`
}

// Validate reports everything that is wrong at once.
func (c *Config) Validate() error {
	var faults config.Faults
	faults.Require(c.Directory != "", "`directory` must be set")
	_, err := parseName(c.Name)
	faults.Require(err == nil, "`name` %w, found %q", err, c.Name)
	faults.Require(c.MaxAge >= 0, "`max_age` must not be negative, found %s", c.MaxAge)
	faults.Require(c.MaxBytes >= 0, "`max_bytes` must not be negative, found %d", c.MaxBytes)
	return faults.Err()
}
