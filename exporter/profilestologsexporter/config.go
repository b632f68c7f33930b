// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/redact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunkencode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/strictconfig"
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
	Encoding splunkencode.Config `mapstructure:",squash"`
	// RecheckInterval is the time after which a peer without profiles is tried with profiles again.
	RecheckInterval time.Duration `mapstructure:"recheck_interval"`
	// MaxRequestBytes bounds an OTLP request, before compression.
	MaxRequestBytes int `mapstructure:"max_request_bytes"`
	// MaxRetryAfter bounds the delay that a peer may ask for.
	MaxRetryAfter time.Duration `mapstructure:"max_retry_after"`
	// DrainTimeout is how long the exporter may send what it holds when it stops.
	DrainTimeout time.Duration `mapstructure:"drain_timeout"`

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

// Unmarshal reads the section strictly: confighttp ignores keys that it does not know.
func (c *HTTPConfig) Unmarshal(conf *confmap.Conf) error {
	return strictconfig.Unmarshal(conf, c)
}

// Unmarshal reads the section strictly.
func (c *HECConfig) Unmarshal(conf *confmap.Conf) error { return strictconfig.Unmarshal(conf, c) }

// Validate names every fault.
func (c *Config) Validate() error {
	var errs []error
	if c.Mode != modeFallback && c.Mode != modeAlways {
		errs = append(errs, fmt.Errorf("`mode` must be fallback or always, found %q", c.Mode))
	}
	peers := 0
	for _, configured := range []bool{c.GRPC.HasValue(), c.HTTP.HasValue(), c.HEC.HasValue()} {
		if configured {
			peers++
		}
	}
	if peers != 1 {
		errs = append(errs, fmt.Errorf("one of `grpc`, `http` and `hec` must be configured, found %d", peers))
	}
	if grpc := c.GRPC.Get(); grpc != nil && grpc.Endpoint == "" {
		errs = append(errs, errors.New("grpc: `endpoint` must be set"))
	}
	for name, value := range map[string]time.Duration{
		"recheck_interval": c.RecheckInterval, "max_retry_after": c.MaxRetryAfter, "drain_timeout": c.DrainTimeout,
	} {
		if value <= 0 {
			errs = append(errs, fmt.Errorf("`%s` must be positive, found %s", name, value))
		}
	}
	errs = append(errs, validateRequestBytes(c.MaxRequestBytes))
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("`timeout` must not be negative, found %s", c.Timeout))
	}
	return errors.Join(errs...)
}

func validateRequestBytes(n int) error {
	if n < minRequestBytes {
		return fmt.Errorf("`max_request_bytes` must be at least %d, found %d", minRequestBytes, n)
	}
	return nil
}

// requestBytes returns the largest size of a request.
func (c *Config) requestBytes() int {
	if c.HEC.HasValue() {
		return c.HEC.Get().MaxRequestBytes
	}
	return c.MaxRequestBytes
}

// shown returns an address for an error, without possible secrets.
func shown(address string) string {
	if strings.ContainsAny(address, "@?") {
		return redact.Text(address)
	}
	return address
}

// Validate names every fault.
func (c *HTTPConfig) Validate() error {
	var errs []error
	for name, address := range map[string]string{
		"endpoint": c.Client.Endpoint, "profiles_endpoint": c.ProfilesEndpoint, "logs_endpoint": c.LogsEndpoint,
	} {
		if parsed, err := url.Parse(address); address != "" && (err != nil || parsed.Scheme == "" || parsed.Host == "") {
			errs = append(errs, fmt.Errorf("`%s` must be a URL, found %q", name, shown(address)))
		}
	}
	if c.Client.Endpoint == "" && (c.ProfilesEndpoint == "" || c.LogsEndpoint == "") {
		errs = append(errs, errors.New("`endpoint` must be set, or both `profiles_endpoint` and `logs_endpoint`"))
	}
	return errors.Join(errs...)
}

// Validate names every fault.
func (c *HECConfig) Validate() error {
	var errs []error
	if parsed, err := url.Parse(c.Client.Endpoint); err != nil || parsed.Scheme == "" || parsed.Host == "" {
		errs = append(errs, fmt.Errorf("`endpoint` must be a URL, found %q", shown(c.Client.Endpoint)))
	}
	errs = append(errs, validateRequestBytes(c.MaxRequestBytes))
	if c.Token == "" {
		errs = append(errs, errors.New("`token` must be set"))
	}
	return errors.Join(errs...)
}

// alwaysLogs reports whether profiles are always sent as log records.
func (c *Config) alwaysLogs() bool { return c.Mode == modeAlways || c.HEC.HasValue() }

// urls returns the URLs for profiles and logs (OTLP specification, OTLP/HTTP request).
func (c *HTTPConfig) urls() (profiles, logs string) {
	profiles, logs = c.ProfilesEndpoint, c.LogsEndpoint
	base := strings.TrimSuffix(c.Client.Endpoint, "/")
	if profiles == "" {
		profiles = base + "/v1development/profiles"
	}
	if logs == "" {
		logs = base + "/v1/logs"
	}
	return profiles, logs
}
