// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configretry"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// load reads the processor's section as the Collector does.
func load(section string) (*Config, error) {
	return collectortest.LoadYAML(createDefaultConfig().(*Config), section)
}

func TestEveryKeyIsRead(t *testing.T) {
	config, err := load(`
timeout: 3s
acknowledge: delivered
max_wait: 4s
retry_on_failure: {enabled: false, initial_interval: 1s, max_interval: 2s, max_elapsed_time: 3s, multiplier: 4, randomization_factor: 0}
send_batch_size: 10
max_batch_bytes: 100000
metadata_keys: [tenant, Region]
metadata_cardinality_limit: 7
`)
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Timeout: 3 * time.Second, SendBatchSize: 10, MaxBatchBytes: 100_000,
		Acknowledge: AcknowledgeDelivered, MaxWait: 4 * time.Second,
		RetryOnFailure: configretry.BackOffConfig{
			InitialInterval: time.Second, MaxInterval: 2 * time.Second, MaxElapsedTime: 3 * time.Second, Multiplier: 4,
		},
		MetadataKeys: []string{"tenant", "Region"}, MetadataCardinalityLimit: 7,
	}, config)
}

func TestTheDefaultsAreValid(t *testing.T) {
	config, err := load("{}")
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig(), config)
}

func TestLimitsCanBeTurnedOff(t *testing.T) {
	_, err := load("{timeout: 0, max_batch_bytes: 0, metadata_cardinality_limit: 0}")
	require.NoError(t, err)
}

func TestValidateNamesEveryFault(t *testing.T) {
	_, err := load(`
timeout: -1s
acknowledge: never
max_wait: 0s
retry_on_failure: {initial_interval: -1s}
send_batch_size: 0
max_batch_bytes: 65535
metadata_keys: [tenant, Tenant, ""]
metadata_cardinality_limit: -1
`)
	for _, text := range []string{
		"`timeout` must not be negative, found -1s",
		"`acknowledge` must be \"batched\" or \"delivered\", found \"never\"",
		"`max_wait` must be positive, found 0s",
		"initial_interval value must be greater than or equal to 0",
		"`send_batch_size` must be positive, found 0",
		"`max_batch_bytes` must be 0 for no limit, or at least 65536, found 65535",
		"`metadata_keys` must be distinct, found \"tenant\" twice",
		"`metadata_keys` must not have an empty entry",
		"`metadata_cardinality_limit` must not be negative, found -1",
	} {
		require.ErrorContains(t, err, text)
	}
	_, err = load("max_batch_size: 7")
	require.ErrorContains(t, err, "max_batch_size")
}
