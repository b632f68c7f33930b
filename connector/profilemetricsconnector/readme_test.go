// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilemetricsconnector

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector/internal/reduce"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestReadme compares the README's tables with the code.
func TestReadme(t *testing.T) {
	keys := []string{}
	for key := range profiletest.ReadmeTable(t, "README.md", "| key of a metric | type | meaning |") {
		keys = append(keys, key)
	}
	want := []string{}
	for field := range collectortest.Defaults(&Metric{}) {
		want = append(want, field)
	}
	assert.ElementsMatch(t, want, keys)

	top := profiletest.ReadmeTable(t, "README.md", "| key of a type | type | default | bound | meaning |")
	defaults := collectortest.Defaults(&defaultTopFunctions)
	collectortest.CheckDefaults(t, top, 2, defaults)
	assert.Len(t, top, len(defaults))

	metrics := profiletest.ReadmeTable(t, "README.md", "| metric | unit | of profiles | |")
	assert.Len(t, metrics, len(builtIn))
	for name, m := range builtIn {
		if assert.Contains(t, metrics, name) {
			assert.Equal(t, m.Unit, metrics[name][1], name)
			assert.Equal(t, strings.Join(m.Profiles, "`, `"), strings.Trim(metrics[name][2], "`"), name)
		}
	}
}

// TestMetadata compares the values of attributes that metadata.yaml and the README list with those that the code has.
func TestMetadata(t *testing.T) {
	declared := profiletest.LoadMetadata(t).Attributes
	assert.Equal(t, []string{"accepted", "retried", "refused"}, declared["outcome"].Enum)
	reasons := profiletest.ReadmeTable(t, "README.md", "| `reason` | |")
	assert.Len(t, reasons, int(reduce.NumReasons))
	var names []string
	for i := range reduce.NumReasons {
		names = append(names, i.String())
		assert.Contains(t, reasons, i.String())
	}
	assert.Equal(t, names, declared["reason"].Enum)
}
