// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestDocs compares docs/profiletool.md with the commands and their flags.
func TestDocs(t *testing.T) {
	const path = "../../docs/profiletool.md"
	table := profiletest.ReadmeTable(t, path, "| command | flags | |")
	text := profiletest.FileBytes(t, path)
	connection := regexp.MustCompile(`(?s)share the flags of the connection: (.*?)\. `).FindStringSubmatch(string(text))
	require.NotNil(t, connection)
	rows := map[string][]string{}
	for use, row := range table {
		rows[strings.Fields(use)[0]] = row
	}
	for _, cmd := range newCommand(&terminal{in: strings.NewReader(""), out: io.Discard, log: io.Discard}).Commands() {
		if cmd.GroupID == groupReports {
			assert.Contains(t, string(text), "`"+cmd.Name(), "the paragraph about reports")
			continue
		}
		row, ok := rows[cmd.Name()]
		if !assert.True(t, ok, "%s has no row", cmd.Name()) {
			continue
		}
		delete(rows, cmd.Name())
		documented := row[1]
		if strings.Contains(documented, "those of the connection") {
			documented += connection[1]
		}
		var want []string
		for _, c := range append(cmd.Commands(), cmd) {
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if f.Name != "help" {
					want = append(want, "--"+f.Name)
				}
			})
		}
		assert.ElementsMatch(t, want, regexp.MustCompile(`--[a-z-]+`).FindAllString(documented, -1), cmd.Name())
		checkHelp(t, cmd)
	}
	delete(rows, "completion") // cobra adds it when it runs
	assert.Empty(t, rows, "no such commands")
}

// checkHelp wants a description of each command and flag.
func checkHelp(t *testing.T, cmd *cobra.Command) {
	assert.NotEmpty(t, cmd.Short, cmd.Name())
	assert.NotEmpty(t, cmd.Long, cmd.Name())
	cmd.Flags().VisitAll(func(f *pflag.Flag) { assert.NotEmpty(t, f.Usage, "%s --%s", cmd.Name(), f.Name) })
}
