// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fenced matches a fenced block of a Markdown page: its language and its content.
var fenced = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// readmeBlocks returns the README's code blocks in a language.
func readmeBlocks(t *testing.T, language string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(repository, "README.md"))
	require.NoError(t, err)
	var blocks []string
	for _, block := range fenced.FindAllStringSubmatch(string(page), -1) {
		if block[1] == language {
			blocks = append(blocks, block[2])
		}
	}
	require.NotEmpty(t, blocks, "the README has no block of %s", language)
	return blocks
}

// TestReadmeCommands runs the README's curl and profiletool lines as written, except for curl's port, and asks make whether it
// knows the targets.
func TestReadmeCommands(t *testing.T) {
	c, curlHome := startQuickstart(t), failingCurl(t)
	pushed := false
	for _, block := range readmeBlocks(t, "sh") {
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "curl "):
				line = strings.ReplaceAll(line, "localhost:4040", c.endpoint)
				pushed = true
			case strings.HasPrefix(line, "make "):
				line = "make --dry-run " + strings.TrimPrefix(line, "make ")
			case strings.HasPrefix(line, "bin/profiletool "):
				line = "mkdir -p bin && go run ./cmd/" + strings.TrimPrefix(line, "bin/")
			default:
				t.Fatalf("the README has a command that this test does not know: %s", line)
			}
			requireRun(t, repository, append(freshMake, "CURL_HOME="+curlHome), "sh", "-c", line)
		}
	}
	require.True(t, pushed)
	require.Len(t, c.output(t)["shop"], 1, "what the README pushes")
}

// failingCurl returns a folder with a .curlrc that makes curl fail if the answer is an error.
func failingCurl(t *testing.T) string {
	t.Helper()
	return filepath.Dir(newFile(t, ".curlrc", []byte("fail-with-body\nsilent\nshow-error\n")))
}

func TestReadmeConfigurations(t *testing.T) {
	for _, config := range readmeBlocks(t, "yaml") {
		requireValid(t, newFile(t, "config.yaml", []byte(config)))
	}
}
