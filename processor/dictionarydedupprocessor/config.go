// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configretry"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// Config is the processor's configuration.
type Config struct {
	// Timeout is how long a batch waits for more requests. With 0, every request is compacted alone and passed on at once.
	Timeout time.Duration `mapstructure:"timeout"`
	// Acknowledge is when a sender gets its answer.
	Acknowledge Acknowledge `mapstructure:"acknowledge"`
	// MaxWait bounds how long a sender waits; then it is told to retry. With AcknowledgeDelivered it begins when the
	// batch's Timeout has passed. If receivers wait for senders when they stop, it bounds that too.
	MaxWait time.Duration `mapstructure:"max_wait"`
	// RetryOnFailure configures how a batch is sent again after the next component refused it temporarily.
	RetryOnFailure configretry.BackOffConfig `mapstructure:"retry_on_failure"`
	// SendBatchSize is the number of samples at which a batch is sent at once.
	SendBatchSize int `mapstructure:"send_batch_size"`
	// MaxBatchBytes is the largest encoded size of an outgoing message, in bytes of OTLP, dictionary included. Larger
	// batches are split. 0 means no limit.
	MaxBatchBytes int `mapstructure:"max_batch_bytes"`
	// MetadataKeys are the keys of client metadata whose values keep requests in separate batches. Case does not matter.
	MetadataKeys []string `mapstructure:"metadata_keys"`
	// MetadataCardinalityLimit is the largest number of distinct combinations of those values with pending requests. 0
	// means no limit.
	MetadataCardinalityLimit int `mapstructure:"metadata_cardinality_limit"`
}

// Acknowledge is when a sender gets its answer.
type Acknowledge string

const (
	// AcknowledgeBatched is when the request is in a batch.
	AcknowledgeBatched Acknowledge = "batched"
	// AcknowledgeDelivered is when the next component has accepted the batch.
	AcknowledgeDelivered Acknowledge = "delivered"
)

// minMaxBatchBytes prevents splitting from taking longer than sending: each part has a header of its own.
const minMaxBatchBytes = 64 << 10

func createDefaultConfig() component.Config {
	retry := configretry.NewDefaultBackOffConfig()
	retry.InitialInterval = 500 * time.Millisecond
	retry.MaxElapsedTime = 0
	return &Config{
		Timeout:                  time.Second,
		Acknowledge:              AcknowledgeDelivered,
		MaxWait:                  5 * time.Second,
		RetryOnFailure:           retry,
		SendBatchSize:            8192,
		MaxBatchBytes:            4_000_000,
		MetadataKeys:             []string{},
		MetadataCardinalityLimit: 1000,
	}
}

// Validate reports all faults.
func (c *Config) Validate() error {
	var faults config.Faults
	faults.Require(c.Timeout >= 0, "`timeout` must not be negative, found %s", c.Timeout)
	faults.Require(c.Acknowledge == AcknowledgeBatched || c.Acknowledge == AcknowledgeDelivered,
		"`acknowledge` must be %q or %q, found %q", AcknowledgeBatched, AcknowledgeDelivered, c.Acknowledge)
	faults.Require(c.MaxWait > 0, "`max_wait` must be positive, found %s", c.MaxWait)
	faults.Require(c.SendBatchSize > 0,
		"`send_batch_size` must be positive, found %d (`timeout: 0` passes every request on at once)", c.SendBatchSize)
	faults.Require(c.MaxBatchBytes == 0 || c.MaxBatchBytes >= minMaxBatchBytes,
		"`max_batch_bytes` must be 0 for no limit, or at least %d, found %d", minMaxBatchBytes, c.MaxBatchBytes)
	faults.Require(c.MetadataCardinalityLimit >= 0,
		"`metadata_cardinality_limit` must not be negative, found %d", c.MetadataCardinalityLimit)
	var keys []string // case does not matter
	for _, key := range c.MetadataKeys {
		keys = append(keys, strings.ToLower(key))
	}
	faults.RequireKeys("metadata_keys", keys)
	return faults.Err()
}
