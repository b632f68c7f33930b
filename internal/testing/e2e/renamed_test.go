// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRenamed gives every key and component that was renamed or removed to the real `validate`: one run names all of
// them, and what to write instead.
func TestRenamed(t *testing.T) {
	table, err := os.ReadFile(filepath.Join(repository, "internal", "service", "config", "renamed.go"))
	require.NoError(t, err)
	args, want := []string{"validate"}, []string{}
	add := func(path, value string) {
		args = append(args, "--config", "yaml:"+path+": "+value)
		want = append(want, "`"+strings.ReplaceAll(path, "::", ".")+"`: ")
	}
	for _, old := range regexp.MustCompile(`(?m)^\t\{"(\w+)", "(\w+)", .*\[\]string\{([^}]*)\}\},$`).
		FindAllStringSubmatch(string(table), -1) {
		for _, key := range regexp.MustCompile(`[\w:]+`).FindAllString(old[3], -1) {
			add(old[1]+"::"+old[2]+"::"+key, "1")
		}
	}
	require.Greater(t, len(want), 40)
	for _, old := range regexp.MustCompile(`(?m)^\t"(\w+)/(\w+)": `).FindAllStringSubmatch(string(table), -1) {
		add(old[1]+"::"+old[2], "{}")
	}
	require.Contains(t, want, "`exporters.pprof`: ")

	out, err := command(t, args...)
	require.Error(t, err)
	for _, sentence := range want {
		assert.Contains(t, out, sentence)
	}
	require.NotContains(t, out, "invalid keys")
}
