// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processesreceiver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestConfig(t *testing.T) {
	for want, yaml := range map[string]map[string]any{
		"`interval` must be at least 1s, found 10ms":                    {"interval": "10ms"},
		"`proc_root` must not be empty":                                 {"proc_root": ""},
		"`max_processes` must be 1 to 100000, found 0":                  {"max_processes": 0},
		"`timeout` must be positive, found 0s":                          {"timeout": 0},
		"`include` must have regular expressions: error parsing regexp": {"include": []any{map[string]any{"name": "("}}},
		"`exclude` must not have an empty entry":                        {"exclude": []any{map[string]any{}}},
		"`include` must have at most 100 entries, found 101":            {"include": make([]any, 101)},
		"`go::profiles` must have only":                                 {"go": map[string]any{"profiles": []any{"heap"}}},
		"`go::profiles` must not be empty":                              {"go": map[string]any{"profiles": []any{}}},
		"`go::max_buckets` must be 1 to 1048576, found 2000000":         {"go": map[string]any{"max_buckets": 2000000}},
		"'processesreceiver.Config' has invalid keys: every_interval":   {"every_interval": 1},
	} {
		_, err := collectortest.LoadConfig(createDefaultConfig().(*Config), yaml)
		require.ErrorContains(t, err, want)
	}
}

func TestFilter(t *testing.T) {
	admits := func(c Config, name, commandLine, container string) bool {
		f, err := newFilter(&c)
		require.NoError(t, err)
		return f.admits(name, commandLine, container)
	}
	assert.True(t, admits(Config{}, "shop", "shop -v", ""))
	only := Config{Include: []Match{{Name: "^shop$", CommandLine: "-v"}, {Container: "^ab"}}}
	assert.True(t, admits(only, "shop", "shop -v", ""))
	assert.False(t, admits(only, "shop", "shop", ""), "all expressions of an entry must match")
	assert.True(t, admits(only, "cart", "cart", "abcd"))
	only.Exclude = []Match{{Container: "^$"}}
	assert.False(t, admits(only, "shop", "shop -v", ""))
}

// TestReadme compares the README's reasons with those of the metadata.
func TestReadme(t *testing.T) {
	described := profiletest.ReadmeTable(t, "README.md", "| reason | meaning, and what to do |")
	delete(described, "reason")
	metadata := profiletest.LoadMetadata(t)
	var names []string
	for _, r := range reasons {
		names = append(names, string(r))
		assert.Contains(t, described, string(r))
	}
	assert.Equal(t, names, metadata.Attributes["reason"].Enum)
	assert.Len(t, described, len(names))
	assert.Equal(t, fmt.Sprint(runtimes), fmt.Sprint(metadata.Attributes["runtime"].Enum))
}
