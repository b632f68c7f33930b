// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Metadata is the part of a component's metadata.yaml that its code and its README must agree with.
type Metadata struct {
	Type   string
	Status struct {
		Stability map[string][]string
	}
	Attributes map[string]struct{ Enum []string }
	Telemetry  struct {
		Metrics map[string]struct {
			Description, Unit string
			Attributes        []string
			Sum               struct{ Monotonic bool }
		}
	}
}

// LoadMetadata reads metadata.yaml of the package under test.
func LoadMetadata(t testing.TB) (m Metadata) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(readFile(t, "metadata.yaml")), &m); err != nil {
		t.Fatalf("metadata.yaml: %v", err)
	}
	return m
}

// ReadmeRows gives the rows of all tables in README.md of the package under test, by their first cell,
// without backquotes.
func ReadmeRows(t testing.TB) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	for line := range strings.Lines(readFile(t, "README.md")) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.ReplaceAll(strings.TrimSpace(cell), "`", ""))
		}
		rows[cells[0]] = cells[1:]
	}
	return rows
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return string(text)
}
