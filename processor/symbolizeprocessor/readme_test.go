// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/lookup"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

func TestReadmeTimeout(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "README.md", "| key | type | default | bound | meaning |")
	assert.Equal(t, "timeout 2m", rows["debuginfod.http"][2])
	assert.Equal(t, 2*time.Minute, createDefaultConfig().(*Config).Sources.Debuginfod.HTTP.Timeout)
}

// TestNames compares the lists in the README and metadata.yaml with the code.
func TestNames(t *testing.T) {
	var reasonNames, sourceNames []string
	for i := range lookup.NumReasons {
		reasonNames = append(reasonNames, lookup.Reason(i).String())
	}
	for i := range sources.NumKinds {
		sourceNames = append(sourceNames, sources.Kind(i).String())
	}
	declared := profiletest.LoadMetadata(t).Attributes
	assert.Equal(t, reasonNames, declared["reason"].Enum)
	assert.Equal(t, sourceNames, declared["source"].Enum)
	assert.ElementsMatch(t, requestResults, declared["result"].Enum)

	var reasons, kinds []string
	for reason := range profiletest.ReadmeTable(t, "README.md", "| `reason` of an unresolved location | |") {
		reasons = append(reasons, reason)
	}
	for kind := range profiletest.ReadmeTable(t, "README.md", "| source | which file |") {
		kinds = append(kinds, kind)
	}
	assert.ElementsMatch(t, reasonNames, reasons)
	assert.ElementsMatch(t, sourceNames, kinds)
}
