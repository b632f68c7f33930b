// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/lookup"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

func TestReadmeDefaults(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "README.md", "| key | type | default | bound | meaning |")
	keys := requireDefaults(t, rows, "", reflect.ValueOf(createDefaultConfig()).Elem())
	assert.Len(t, rows, keys)
}

// requireDefaults compares the rows of the keys below prefix with their defaults, and returns how many keys there are.
func requireDefaults(t *testing.T, rows map[string][]string, prefix string, defaults reflect.Value) (keys int) {
	for i := range defaults.NumField() {
		key := prefix + defaults.Type().Field(i).Tag.Get("mapstructure")
		field := defaults.Field(i)
		client, isClient := field.Interface().(confighttp.ClientConfig)
		switch {
		case isClient: // the Collector documents its keys
			assert.Equal(t, "timeout 2m", rows[key][2])
			assert.Equal(t, 2*time.Minute, client.Timeout)
			keys++
		case field.Kind() == reflect.Struct:
			keys += requireDefaults(t, rows, key+".", field)
		case assert.Contains(t, rows, key):
			assert.Equal(t, fmt.Sprint(field.Interface()), rows[key][2], key)
			keys++
		}
	}
	return keys
}

// TestNames compares what the README and metadata.yaml list with what the code has.
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
