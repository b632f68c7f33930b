// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunklog"
)

// Config configures the receiver.
type Config struct {
	Protocols Protocols `mapstructure:"protocols"`
	// TextThreadMetadata says how much of what a text stack tells of its thread is kept: basic or full.
	TextThreadMetadata string       `mapstructure:"text_thread_metadata"`
	Limits             LimitsConfig `mapstructure:"limits"`
}

// Protocols are the servers. Any non-empty subset may stand.
type Protocols struct {
	// GRPC takes OTLP logs over gRPC.
	GRPC configoptional.Optional[configgrpc.ServerConfig] `mapstructure:"grpc"`
	// HTTP takes OTLP logs over HTTP.
	HTTP configoptional.Optional[HTTPConfig] `mapstructure:"http"`
	// HEC takes events of Splunk's HTTP Event Collector.
	HEC configoptional.Optional[HTTPConfig] `mapstructure:"hec"`
}

// HTTPConfig configures a server that speaks HTTP.
type HTTPConfig struct {
	Server confighttp.ServerConfig `mapstructure:",squash"`
}

// LimitsConfig bounds what one request may cost.
type LimitsConfig struct {
	// MaxProfileBytes bounds the bodies of one request together after decompression, in bytes.
	MaxProfileBytes int `mapstructure:"max_profile_bytes"`
	// MaxStackDepth is the largest number of frames in one stack.
	MaxStackDepth int `mapstructure:"max_stack_depth"`
}

// How much of what a text stack tells of its thread is kept.
const (
	metadataBasic = "basic"
	metadataFull  = "full"
)

// Unmarshal reads the section strictly: confighttp ignores keys that it does not know.
func (c *HTTPConfig) Unmarshal(conf *confmap.Conf) error { return unmarshalStrict(conf, c) }

// Validate names every fault.
func (c *Config) Validate() error {
	var errs []error
	if c.TextThreadMetadata != metadataBasic && c.TextThreadMetadata != metadataFull {
		errs = append(errs, fmt.Errorf("`text_thread_metadata` must be basic or full, found %q", c.TextThreadMetadata))
	}
	return errors.Join(errs...)
}

// Validate names every fault.
func (c *Protocols) Validate() error {
	var errs []error
	if !c.GRPC.HasValue() && !c.HTTP.HasValue() && !c.HEC.HasValue() {
		errs = append(errs, errors.New("at least one of `grpc`, `http` and `hec` must be configured"))
	}
	if grpc := c.GRPC.Get(); grpc != nil && grpc.NetAddr.Endpoint == "" {
		errs = append(errs, errors.New("grpc: `endpoint` must be set"))
	}
	return errors.Join(errs...)
}

// Validate names every fault.
func (c *HTTPConfig) Validate() error {
	if c.Server.NetAddr.Endpoint == "" {
		return errors.New("`endpoint` must be set")
	}
	return nil
}

// Validate names every fault.
func (c *LimitsConfig) Validate() error {
	var errs []error
	if c.MaxProfileBytes <= 0 {
		errs = append(errs, fmt.Errorf("`max_profile_bytes` must be positive, found %d", c.MaxProfileBytes))
	}
	if c.MaxStackDepth <= 0 {
		errs = append(errs, fmt.Errorf("`max_stack_depth` must be positive, found %d", c.MaxStackDepth))
	}
	return errors.Join(errs...)
}

func (c *Config) options() splunklog.Options {
	return splunklog.Options{
		FullThreadMetadata: c.TextThreadMetadata == metadataFull,
		MaxProfileBytes:    c.Limits.MaxProfileBytes,
		MaxStackDepth:      c.Limits.MaxStackDepth,
	}
}
