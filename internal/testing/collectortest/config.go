// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package collectortest

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"
)

// LoadConfig reads a section as the Collector does: onto the defaults, which it changes, and then Validate.
func LoadConfig[C any](defaults *C, section map[string]any) (*C, error) {
	if err := confmap.NewFromStringMap(section).Unmarshal(defaults); err != nil {
		return nil, err
	}
	return defaults, confmap.Validate(defaults)
}

// LoadYAML is LoadConfig for a section in YAML.
func LoadYAML[C any](defaults *C, section string) (*C, error) {
	var raw map[string]any
	if err := yaml.Unmarshal([]byte(section), &raw); err != nil {
		return nil, err
	}
	return LoadConfig(defaults, raw)
}

// Defaults returns the values of a configuration by their keys. The keys of a section begin with its name and a dot. A
// section whose type is listed in whole is one value.
func Defaults(config any, whole ...reflect.Type) map[string]any {
	values := map[string]any{}
	var add func(prefix string, section reflect.Value)
	add = func(prefix string, section reflect.Value) {
		for field, value := range section.Fields() {
			key := field.Tag.Get("mapstructure")
			switch {
			case key == "", key == "-": // not a key
			case value.Kind() == reflect.Struct && !slices.Contains(whole, value.Type()):
				add(prefix+key+".", value)
			default:
				values[prefix+key] = value.Interface()
			}
		}
	}
	add("", reflect.ValueOf(config).Elem())
	return values
}

// CheckDefaults compares a column of a README's table, whose rows are by key, with values.
func CheckDefaults(t testing.TB, rows map[string][]string, column int, values map[string]any) {
	t.Helper()
	for key, value := range values {
		if assert.Contains(t, rows, key) {
			assert.Equal(t, fmt.Sprint(value), rows[key][column], key)
		}
	}
}

// ReadmeExamples returns the examples in YAML of a README: sections such as receivers, and their components.
func ReadmeExamples(t testing.TB, path string) (examples []map[string]map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
		var example map[string]map[string]any
		require.NoError(t, yaml.Unmarshal(block[1], &example), "%s", block[1])
		examples = append(examples, example)
	}
	require.NotEmpty(t, examples, path)
	return examples
}

// What comments lines of the shipped configurations out, beside Doors: a word after "# @", as docs/tls.md has it.
const (
	Doors   = ""         // TLS and tokens of all ports: a # with no space after it
	Backend = "@backend" // TLS and a token of what comes next
	Kafka   = "@kafka"   // TLS and a password of Kafka
	Metrics = "@metrics" // profile_metrics
)

var doors = regexp.MustCompile(`(?m)^( *)#([^ \n])`)

// Uncommented returns a shipped configuration without the marks that comment lines out.
func Uncommented(t testing.TB, config string, marks ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(Repository, config))
	require.NoError(t, err)
	text := string(content)
	for _, mark := range marks {
		before := text
		if mark == Doors {
			text = doors.ReplaceAllString(text, "$1$2")
		} else {
			text = strings.ReplaceAll(text, "# "+mark+" ", "")
		}
		require.NotEqual(t, before, text, "%s has no %q", config, mark)
	}
	return text
}
