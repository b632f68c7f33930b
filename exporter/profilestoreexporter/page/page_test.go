// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"io/fs"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScripts runs the unit tests of the page's modules with the test runner of Node.js.
func TestScripts(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("SKIPPED: the page's unit tests need node: ", err)
	}
	out, err := exec.CommandContext(t.Context(), node, "--test", "test/").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestFiles expects of each embedded file what the content security policy and working offline need.
func TestFiles(t *testing.T) {
	var (
		inline   = regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]+</script>|<style|\sstyle\s*=|\son[a-z]+\s*=`)
		external = regexp.MustCompile(`(?i)(?:https?:)?//[a-z0-9-]+\.[a-z]{2,}`)
		parsed   = regexp.MustCompile(
			`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function\(|createContextualFragment|DOMParser`)
		loads = regexp.MustCompile(`(?:from|src=|href=)\s*["']((?:\./|static/)[^"']+)["']`)
	)
	names := map[string]bool{}
	texts := map[string]string{}
	require.NoError(t, fs.WalkDir(Files, ".", func(name string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		if entry.IsDir() {
			return nil
		}
		data, err := fs.ReadFile(Files, name)
		require.NoError(t, err)
		names[name], texts[name] = true, string(data)
		return nil
	}))
	require.Contains(t, names, "index.html")
	require.Contains(t, names, "static/app.js")
	for name, text := range texts {
		if path.Ext(name) != ".svg" {
			require.Contains(t, text[:200], "SPDX-License-Identifier: Apache-2.0", name)
			require.NotRegexp(t, external, strings.ReplaceAll(text, "http://localhost", ""), name)
		}
		if path.Ext(name) == ".html" {
			require.NotRegexp(t, inline, text, name)
		}
		require.NotRegexp(t, parsed, text, "%s: a producer's text must never become HTML or code", name)
		for _, match := range loads.FindAllStringSubmatch(text, -1) {
			if match[1] == "./" {
				continue
			}
			loaded := path.Join(path.Dir(name), match[1])
			require.True(t, names[loaded], "%s loads %s, which is not embedded", name, loaded)
		}
	}
}
