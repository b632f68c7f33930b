// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"cmp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/encode"
)

// Config configures the exporter.
type Config struct {
	// Mode is fallback or always.
	Mode string `mapstructure:"mode"`
	// GRPC, HTTP and HEC are the protocols. One of them must be configured.
	GRPC configoptional.Optional[configgrpc.ClientConfig] `mapstructure:"grpc"`
	HTTP configoptional.Optional[HTTPConfig]              `mapstructure:"http"`
	HEC  configoptional.Optional[HECConfig]               `mapstructure:"hec"`
	// Encoding configures how profiles become log records.
	Encoding encode.Config `mapstructure:",squash"`
	// RecheckInterval is the time after which a peer without profiles is tried with profiles again.
	RecheckInterval time.Duration `mapstructure:"recheck_interval"`
	// MaxRequestBytes bounds an OTLP request, before compression.
	MaxRequestBytes int `mapstructure:"max_request_bytes"`
	// MaxRetryAfter bounds the delay that a peer may ask for.
	MaxRetryAfter time.Duration `mapstructure:"max_retry_after"`

	Queue configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	Retry configretry.BackOffConfig                                `mapstructure:"retry_on_failure"`
	// Timeout bounds a single request.
	Timeout time.Duration `mapstructure:"timeout"`
}

// HTTPConfig is a peer that speaks OTLP/HTTP.
type HTTPConfig struct {
	Client confighttp.ClientConfig `mapstructure:",squash"`
	// ProfilesEndpoint and LogsEndpoint are whole URLs. If they are empty, the endpoint and OTLP's path are used.
	ProfilesEndpoint string `mapstructure:"profiles_endpoint"`
	LogsEndpoint     string `mapstructure:"logs_endpoint"`
}

// The modes.
const (
	modeFallback = "fallback"
	modeAlways   = "always"
)

// HECConfig is an HTTP Event Collector. It accepts events only: the mode is always.
type HECConfig struct {
	Client confighttp.ClientConfig `mapstructure:",squash"`
	// Token is sent as "Authorization: Splunk <token>".
	Token configopaque.String `mapstructure:"token"`
	// MaxRequestBytes bounds a request, before compression.
	MaxRequestBytes int `mapstructure:"max_request_bytes"`
}

// Validate names every fault.
func (c *Config) Validate() error {
	var faults config.Faults
	faults.Require(c.Mode == modeFallback || c.Mode == modeAlways, "`mode` must be fallback or always, found %q", c.Mode)
	peers := 0
	for _, configured := range []bool{c.GRPC.HasValue(), c.HTTP.HasValue(), c.HEC.HasValue()} {
		if configured {
			peers++
		}
	}
	faults.Require(peers == 1, "one of `grpc`, `http` and `hec` must be configured, found %d", peers)
	grpc := c.GRPC.Get()
	faults.Require(grpc == nil || grpc.Endpoint != "", "grpc: `endpoint` must be set")
	faults.Require(c.RecheckInterval > 0, "`recheck_interval` must be positive, found %s", c.RecheckInterval)
	faults.Require(c.MaxRetryAfter > 0, "`max_retry_after` must be positive, found %s", c.MaxRetryAfter)
	requireRequestBytes(&faults, c.MaxRequestBytes)
	faults.Require(c.Timeout >= 0, "`timeout` must not be negative, found %s", c.Timeout)
	return faults.Err()
}

func requireRequestBytes(faults *config.Faults, n int) {
	faults.Require(n >= minRequestBytes, "`max_request_bytes` must be at least %d, found %d", minRequestBytes, n)
}

func (c *Config) requestBytes() int {
	if c.HEC.HasValue() {
		return c.HEC.Get().MaxRequestBytes
	}
	return c.MaxRequestBytes
}

// Validate names every fault.
func (c *HTTPConfig) Validate() error {
	var faults config.Faults
	for _, set := range []struct{ key, address string }{
		{"endpoint", c.Client.Endpoint}, {"profiles_endpoint", c.ProfilesEndpoint}, {"logs_endpoint", c.LogsEndpoint},
	} {
		if set.address != "" {
			faults.RequireURL(set.key, set.address)
		}
	}
	faults.Require(c.Client.Endpoint != "" || c.ProfilesEndpoint != "" && c.LogsEndpoint != "",
		"`endpoint` must be set, or both `profiles_endpoint` and `logs_endpoint`")
	return faults.Err()
}

// Validate names every fault.
func (c *HECConfig) Validate() error {
	var faults config.Faults
	faults.RequireURL("endpoint", c.Client.Endpoint)
	requireRequestBytes(&faults, c.MaxRequestBytes)
	faults.Require(c.Token != "", "`token` must be set")
	return faults.Err()
}

// alwaysLogs reports whether profiles are always sent as log records.
func (c *Config) alwaysLogs() bool { return c.Mode == modeAlways || c.HEC.HasValue() }

// urls returns the URLs for profiles and logs (OTLP specification, OTLP/HTTP request).
func (c *HTTPConfig) urls() (profiles, logs string) {
	base := strings.TrimSuffix(c.Client.Endpoint, "/")
	return cmp.Or(c.ProfilesEndpoint, base+"/v1development/profiles"), cmp.Or(c.LogsEndpoint, base+"/v1/logs")
}
