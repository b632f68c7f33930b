// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/procfs"
)

func TestReadmeDefaults(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "README.md", "| key | type | default | bound | meaning |")
	keys := requireDefaults(t, rows, "", reflect.ValueOf(createDefaultConfig()).Elem())
	assert.Len(t, rows, keys)
}

// requireDefaults compares the rows of the keys below prefix with their defaults, and returns how many keys there are.
func requireDefaults(t *testing.T, rows map[string][]string, prefix string, defaults reflect.Value) (keys int) {
	for i := range defaults.NumField() {
		key := defaults.Type().Field(i).Tag.Get("mapstructure")
		switch {
		case defaults.Field(i).Kind() == reflect.Struct:
			keys += requireDefaults(t, rows, prefix+key+".", defaults.Field(i))
		case assert.Contains(t, rows, prefix+key):
			assert.Equal(t, fmt.Sprint(defaults.Field(i).Interface()), rows[prefix+key][2], key)
			keys++
		}
	}
	return keys
}

// TestReadmeNames compares what the README lists with what there is.
func TestReadmeNames(t *testing.T) {
	var sources, outcomes []string
	for source := range profiletest.ReadmeTable(t, "README.md", "| source | the name is |") {
		sources = append(sources, source)
	}
	for outcome := range profiletest.ReadmeTable(t, "README.md", "| `outcome` of reading a process | |") {
		outcomes = append(outcomes, outcome)
	}
	assert.ElementsMatch(t, sourceNames[firstSource:], sources)
	assert.ElementsMatch(t, outcomeNames(), outcomes)
	by := profiletest.ReadmeTable(t, "README.md", "| `by` | its resources have, besides `service.name` |")
	assert.Len(t, by, len(allBy))
	for _, by2 := range allBy {
		assert.Contains(t, by, string(by2))
	}
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, word := range []string{sourceNames[fromNothing], sourceNames[unchanged], otherMaxResources, otherMessageSize} {
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
	assert.Equal(t, sourceNames[:], declared["source"].Enum)
	assert.Equal(t, outcomeNames(), declared["outcome"].Enum)
	assert.Equal(t, []string{otherMaxResources, otherMessageSize}, declared["other_reason"].Enum)
}
