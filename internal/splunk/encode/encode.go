// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package encode has what the components that send profiles as log records share: configuration keys, and the
// metrics of the translation. The translator itself is records.Encoder.
package encode

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
)

// Config configures how profiles become log records.
type Config struct {
	// Format is that of the records' bodies: pprof or otlp.
	Format string `mapstructure:"format"`
	// MaxRecordBytes bounds the encoded size of a record, in bytes.
	MaxRecordBytes int `mapstructure:"max_record_bytes"`
	// SplunkTypesOnly leaves out profiles that measure neither CPU nor allocations, except in the format otlp.
	SplunkTypesOnly bool `mapstructure:"splunk_types_only"`
}

var formats = map[string]records.Format{"pprof": records.FormatPprof, "otlp": records.FormatOTLP}

// minRecordBytes leaves room for a record's attributes.
const minRecordBytes = 1000

// DefaultConfig is the only place for these keys' defaults; the components' READMEs are compared with it.
func DefaultConfig() Config {
	return Config{Format: "pprof", MaxRecordBytes: 1_000_000}
}

// Validate names every fault.
func (c *Config) Validate() error {
	var faults config.Faults
	_, ok := formats[c.Format]
	faults.Require(ok, "`format` must be pprof or otlp, found %q", c.Format)
	faults.Require(c.MaxRecordBytes >= minRecordBytes, "`max_record_bytes` must be at least %d, found %d", minRecordBytes,
		c.MaxRecordBytes)
	return faults.Err()
}

// Options returns the encoder's options. maxPartBytes bounds the records of one part together; 0 is no limit.
func (c *Config) Options(maxPartBytes int) records.EncodeOptions {
	return records.EncodeOptions{
		Format: formats[c.Format], MaxRecordBytes: c.MaxRecordBytes, MaxPartBytes: maxPartBytes,
		SplunkTypesOnly: c.SplunkTypesOnly,
	}
}

// Metrics counts the log records that are made, by the generated counters of a component. It is safe for concurrent
// use.
type Metrics struct {
	Format                                                      string
	Records, Samples, Bytes, Oversized, LeftOut, DroppedSamples metric.Int64Counter
	LeftOutAttributes                                           metric.Int64Counter
}

// Sent counts a part that was accepted.
func (m *Metrics) Sent(ctx context.Context, part *records.EncodedPart) {
	m.add(ctx, m.Records, part.Records)
	m.add(ctx, m.Samples, part.Samples)
	m.add(ctx, m.Bytes, part.Bytes)
	m.add(ctx, m.Oversized, part.Oversized)
	m.add(ctx, m.LeftOut, part.LeftOut)
	m.add(ctx, m.LeftOutAttributes, part.LeftOutAttributes)
	m.Dropped(ctx, part.Dropped)
}

// Dropped counts samples that cannot be understood.
func (m *Metrics) Dropped(ctx context.Context, n int) { m.add(ctx, m.DroppedSamples, n) }

func (m *Metrics) add(ctx context.Context, c metric.Int64Counter, n int) {
	if n > 0 {
		c.Add(ctx, int64(n), telemetry.Attributes("format", m.Format))
	}
}
