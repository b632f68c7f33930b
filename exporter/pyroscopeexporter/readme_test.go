// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestReadmeDefaults(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	rows := profiletest.ReadmeTable(t, "README.md", "| key | type | default | meaning |")
	delete(rows, "key")
	defaults := map[string]any{
		"endpoint": "", "timeout": cfg.Client.Timeout, "tenant": "",
		"labels.include": cfg.Labels.Include, "labels.exclude": cfg.Labels.Exclude,
		"labels.sample_exclude": cfg.Labels.SampleExclude,
		"labels.trace_id":       cfg.Labels.TraceID, "labels.max": cfg.Labels.Max, "labels.dots": cfg.Labels.Dots,
		"external_labels":     cfg.ExternalLabels,
		"max_profile_samples": cfg.MaxProfileSamples, "max_profile_bytes": cfg.MaxProfileBytes,
		"max_retry_after": cfg.MaxRetryAfter,
	}
	collectortest.CheckDefaults(t, rows, 2, defaults)
	assert.Len(t, rows, len(defaults))
}

// TestMetadata compares the values of attributes that metadata.yaml lists with those that the code has.
func TestMetadata(t *testing.T) {
	attributes := profiletest.LoadMetadata(t).Attributes
	assert.Equal(t, []string{outcomeAccepted, outcomeRefused, outcomeRetry}, attributes["outcome"].Enum)
	assert.Equal(t, []string{droppedInvalid, droppedNegative, droppedTooLarge}, attributes["reason"].Enum)
}
