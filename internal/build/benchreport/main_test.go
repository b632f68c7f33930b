// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const output = `goos: linux
BenchmarkDecode/small/impl=ours-2   	  10	  900 ns/op	  50 cpu-ns/op
BenchmarkDecode/small/impl=ours-2   	  10	  100 ns/op	  60 cpu-ns/op
BenchmarkDecode/small/impl=ours-2   	  10	  100 ns/op	  10 cpu-ns/op
BenchmarkDecode/small/impl=peer-2   	  10	  100 ns/op	  100 cpu-ns/op
BenchmarkDecode/large/impl=peer-2   	  10	  100 ns/op	  1000 cpu-ns/op
BenchmarkDecode/large/impl=ours-2   	  10	  100 ns/op	  2000 cpu-ns/op
`

func TestResult(t *testing.T) {
	for command, want := range map[string]string{
		// The medians are 50 by 100, and 2000 by 1000.
		"`go test -bench 'Decode/.*/impl=(ours\\|peer)' ./decode`": "1.00 (0.50 to 2.00)",
		"`go test -bench Decode ./decode`":                         "316 (50 to 2000)",
	} {
		r := parseRow("| Decode | – | `profile.Parse` | `cpu-ns/op` | " + command + " |")
		require.NotNil(t, r, command)
		result, err := r.result(output)
		require.NoError(t, err)
		assert.Equal(t, want, result, command)
		_, err = r.result("no benchmark")
		assert.Error(t, err)
	}
	assert.Nil(t, parseRow("| Beside Parca | 0.41 | Parca | CPU | `PARCA=/tmp/parca go test -bench Peers ./e2e` |"))
	assert.Nil(t, parseRow("| figure | result | peer | metric | command |"))
}

func TestRun(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go": "#!/bin/sh\n[ \"$5\" = -count ] && cat " + folder + "/output", "output": output,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o700))
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	const before = "# Page\n\n" +
		"| Decode | – | peer | `cpu-ns/op` | `go test -bench 'Decode/.*/impl=(ours\\|peer)' ./decode` |\n"
	const after = "| Decode | 1.00 (0.50 to 2.00) | peer |"
	page := filepath.Join(folder, "page.md")
	require.NoError(t, os.WriteFile(page, []byte(before), 0o600))
	require.NoError(t, run(page, []string{"-count", "3"}))
	written := profiletest.FileBytes(t, page)
	assert.Contains(t, string(written), after)
	require.Error(t, run(page, []string{"-fails"}))
}

// Each row of the page is measured, or says which program it needs; and its benchmark is there.
func TestPage(t *testing.T) {
	page := profiletest.FileBytes(t, "../../../docs/benchmarks.md")
	rows := 0
	for line := range strings.Lines(string(page)) {
		r := parseRow(strings.TrimSpace(line))
		if r == nil {
			continue
		}
		rows++
		fields := strings.Fields(r.command)
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.Trim(fields[3], "'"), "Benchmark"), "/")
		files, err := filepath.Glob(filepath.Join("../../..", fields[len(fields)-1], "*_test.go"))
		require.NoError(t, err)
		found := false
		for _, file := range files {
			content := profiletest.FileBytes(t, file)
			found = found || strings.Contains(string(content), "func Benchmark"+name)
		}
		assert.True(t, found, r.command)
	}
	assert.Greater(t, rows, 10)
}
