// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
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
	if err := yaml.Unmarshal(ReadFile(t, "metadata.yaml"), &m); err != nil {
		t.Fatalf("metadata.yaml: %v", err)
	}
	return m
}

// ReadmeTable returns the rows of the table with this header line in the README at path, by their first cell, which
// they include. Cells are without the backquotes around them.
func ReadmeTable(t testing.TB, path, header string) map[string][]string {
	t.Helper()
	_, rest, found := strings.Cut(string(ReadFile(t, path)), header+"\n")
	if !found {
		t.Fatalf("%s has no table %s", path, header)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i, cell := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cell), "`")
		}
		if !strings.HasPrefix(cells[0], "---") {
			rows[cells[0]] = cells
		}
	}
	return rows
}
