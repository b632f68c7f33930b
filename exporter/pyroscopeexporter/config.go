// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// Config configures the exporter. The keys of confighttp's client are beside its own.
type Config struct {
	Client confighttp.ClientConfig `mapstructure:",squash"`
	// Tenant is sent as X-Scope-OrgID; empty sends no such header.
	Tenant configopaque.String `mapstructure:"tenant"`
	Labels LabelsConfig        `mapstructure:"labels"`
	// ExternalLabels are on every series.
	ExternalLabels map[string]string `mapstructure:"external_labels"`
	// MaxProfileSamples and MaxProfileBytes bound a pprof before compression; larger ones are split.
	MaxProfileSamples int `mapstructure:"max_profile_samples"`
	MaxProfileBytes   int `mapstructure:"max_profile_bytes"`
	// MaxRetryAfter caps the delay that the server asks for.
	MaxRetryAfter time.Duration `mapstructure:"max_retry_after"`

	Queue configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	Retry configretry.BackOffConfig                                `mapstructure:"retry_on_failure"`
}

// How dots of attribute names appear in labels.
const (
	dotsKeep       = "keep"
	dotsUnderscore = "underscore"
)

// LabelsConfig configures which attributes become labels of a series.
type LabelsConfig struct {
	// Include names the only resource attributes that become labels, in the order in which they are kept if there are more
	// than Max. Empty means all.
	Include []string `mapstructure:"include"`
	// Exclude names attributes of resources and profiles that do not become labels.
	Exclude []string `mapstructure:"exclude"`
	// SampleExclude names attributes of samples that are left out, because each of their values would become a series.
	SampleExclude []string `mapstructure:"sample_exclude"`
	// TraceID sends the trace of a link as the sample label trace_id. Servers before v2.1 make a series of each trace.
	TraceID bool `mapstructure:"trace_id"`
	// Max is the largest number of labels of a series. Pyroscope refuses series with more than its own limit.
	Max int `mapstructure:"max"`
	// Dots is keep or underscore.
	Dots string `mapstructure:"dots"`
}

// fixedLabels is the number of labels that each series has: __name__, __delta__ and service_name.
const fixedLabels = 3

// minMaxProfileBytes keeps splitting from taking more time than sending.
const minMaxProfileBytes = 64 << 10

func createDefaultConfig() component.Config {
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 10 * time.Second
	return &Config{
		Client: client,
		Labels: LabelsConfig{
			Include: []string{}, Exclude: []string{},
			SampleExclude: kind.SampleDetails(),
			Max:           30, Dots: dotsUnderscore,
		},
		ExternalLabels:    map[string]string{},
		MaxProfileSamples: 16_000,
		MaxProfileBytes:   4 << 20,
		MaxRetryAfter:     5 * time.Minute,
		Queue:             configoptional.Some(exporterhelper.NewDefaultQueueConfig()),
		Retry:             configretry.NewDefaultBackOffConfig(),
	}
}

// Validate reports everything that is wrong at once.
func (c *Config) Validate() error {
	var faults config.Faults
	faults.RequireURL("endpoint", c.Client.Endpoint)
	faults.Require(!strings.HasSuffix(strings.TrimRight(c.Client.Endpoint, "/"), pushPath),
		"`endpoint` must be the address of the server, without %s", pushPath)
	least := fixedLabels + len(c.ExternalLabels)
	faults.Require(c.Labels.Max >= least,
		"`labels.max` must be at least %d, for __name__, __delta__, service_name and `external_labels`, found %d", least,
		c.Labels.Max)
	faults.Require(c.Labels.Dots == dotsKeep || c.Labels.Dots == dotsUnderscore,
		"`labels.dots` must be %s or %s, found %q", dotsKeep, dotsUnderscore, c.Labels.Dots)
	for _, name := range slices.Sorted(maps.Keys(c.ExternalLabels)) {
		faults.Require(kind.LabelName(name, c.Labels.Dots == dotsKeep) == name,
			"`external_labels` must have names of letters, digits and _, or . if `labels.dots` is keep, that do not begin with a "+
				"digit, found %q", name)
	}
	faults.Require(c.MaxProfileSamples > 0, "`max_profile_samples` must be positive, found %d", c.MaxProfileSamples)
	faults.Require(c.MaxProfileBytes >= minMaxProfileBytes, "`max_profile_bytes` must be at least %d, found %d",
		minMaxProfileBytes, c.MaxProfileBytes)
	faults.Require(c.Client.Timeout >= 0, "`timeout` must not be negative, found %s", c.Client.Timeout)
	faults.Require(c.MaxRetryAfter > 0, "`max_retry_after` must be positive, found %s", c.MaxRetryAfter)
	return faults.Err()
}

// maxSampleLabels returns the largest number of labels that samples add to a series: half of all, or what the others
// leave.
func (c *Config) maxSampleLabels() int {
	return max(0, min(c.Labels.Max/2, c.Labels.Max-fixedLabels-len(c.ExternalLabels)))
}
