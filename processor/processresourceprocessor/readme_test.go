// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/procfs"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestReadmeNames compares what the README lists with what there is.
func TestReadmeNames(t *testing.T) {
	var sources []Source
	var outcomes []string
	for source := range profiletest.ReadmeTable(t, "README.md", "| source | the name is |") {
		sources = append(sources, Source(source))
	}
	for outcome := range profiletest.ReadmeTable(t, "README.md", "| `outcome` of reading a process | |") {
		outcomes = append(outcomes, outcome)
	}
	assert.ElementsMatch(t, allSources, sources)
	assert.ElementsMatch(t, outcomeNames(), outcomes)
	by := profiletest.ReadmeTable(t, "README.md", "| `by` | its resources have, besides `service.name` |")
	assert.Len(t, by, len(allBy))
	for _, by2 := range allBy {
		assert.Contains(t, by, string(by2))
	}
	text := profiletest.FileBytes(t, "README.md")
	for _, word := range []string{string(fromNothing), string(unchanged), otherMaxResources, otherMessageSize} {
		assert.Contains(t, string(text), "`"+word+"`")
	}
}

func outcomeNames() (names []string) {
	for i := range procfs.NumOutcomes {
		names = append(names, procfs.Outcome(i).String())
	}
	return names
}

// TestMetadata compares the values of attributes that metadata.yaml lists with those that the code has.
func TestMetadata(t *testing.T) {
	declared := profiletest.LoadMetadata(t).Attributes
	var names []string
	for _, source := range metricSources {
		names = append(names, string(source))
	}
	assert.Equal(t, names, declared["source"].Enum)
	assert.Equal(t, outcomeNames(), declared["outcome"].Enum)
	assert.Equal(t, []string{otherMaxResources, otherMessageSize}, declared["other_reason"].Enum)
}
