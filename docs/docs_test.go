// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs checks the documents of the repository: their links, their size, and that each has its place.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const root = ".."

const (
	maxPageWords   = 1_200
	maxReadmeWords = 900
	maxWords       = 28_000 // of this folder, without decisions
)

var (
	// fence matches the beginning or the end of a code block.
	fence   = regexp.MustCompile("^ *```(.*)$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} (.*)$`)
	// dropped is what GitHub removes from a heading to make its anchor.
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	made    = regexp.MustCompile("`make ([a-z0-9][a-z0-9-]*)")
	// skipped are folders of what nobody wrote.
	skipped = []string{".git", "bin", "node_modules"}
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	// named matches a page that a comment or an error message names.
	named = regexp.MustCompile(`(?:\.\./)*\b(?:docs|receiver|processor|exporter|connector)/[\w/-]+\.md\b`)
)

// document is a Markdown file: its path from the root, and its lines without those of code blocks.
type document struct {
	path, text string
	prose      []string
}

// files returns the paths of all files of the repository that people wrote, by their extension.
func files(t *testing.T, extensions ...string) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := entry.Name(); {
		case entry.IsDir() && (slices.Contains(skipped, name) || strings.HasPrefix(name, "profiles-")):
			return filepath.SkipDir
		case !entry.IsDir():
			for _, extension := range extensions {
				if strings.HasSuffix(name, extension) {
					paths = append(paths, path)
				}
			}
		}
		return nil
	}))
	return paths
}

func documents(t *testing.T) (list []document) {
	t.Helper()
	for _, path := range files(t, ".md") {
		content := profiletest.FileBytes(t, path)
		d := document{path: path, text: string(content)}
		inCode := false
		for line := range strings.Lines(d.text) {
			if fence.MatchString(strings.TrimRight(line, "\n")) {
				inCode = !inCode
			} else if !inCode {
				d.prose = append(d.prose, strings.TrimRight(line, "\n"))
			}
		}
		assert.False(t, inCode, "%s has a code block without an end", path)
		list = append(list, d)
	}
	require.Greater(t, len(list), 50)
	return list
}

// anchors returns the anchors of a document's headings, as GitHub makes them.
func (d document) anchors() map[string]bool {
	anchors := map[string]bool{}
	for _, line := range d.prose {
		if match := heading.FindStringSubmatch(line); match != nil {
			text := strings.ToLower(linked.ReplaceAllString(match[1], "$1"))
			anchors[strings.ReplaceAll(dropped.ReplaceAllString(text, ""), " ", "-")] = true
		}
	}
	return anchors
}

// Each link to a file or to a heading of one leads somewhere.
func TestLinks(t *testing.T) {
	anchors := map[string]map[string]bool{}
	list := documents(t)
	for _, d := range list {
		anchors[filepath.Clean(d.path)] = d.anchors()
	}
	for _, d := range list {
		for _, match := range link.FindAllStringSubmatch(strings.Join(d.prose, "\n"), -1) {
			path, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(path, ":") {
				continue // another site
			}
			target := d.path
			if path != "" {
				target = filepath.Join(filepath.Dir(d.path), path)
			}
			_, err := os.Stat(target)
			assert.NoError(t, err, "%s: %s", d.path, match[1])
			if anchor != "" {
				assert.True(t, anchors[filepath.Clean(target)][anchor], "%s: there is no heading %s", d.path, match[1])
			}
		}
	}
}

// Each target of make that a page names is there, and those that the workflow of a release calls, which rarely runs.
func TestTargets(t *testing.T) {
	targets := map[string]bool{}
	for _, name := range []string{"Makefile", "internal/build/e2e.mk"} {
		content := profiletest.FileBytes(t, filepath.Join(root, name))
		for _, match := range regexp.MustCompile(`(?m)^([a-z0-9 -]+):`).FindAllStringSubmatch(string(content), -1) {
			for target := range strings.FieldsSeq(match[1]) {
				targets[target] = true
			}
		}
	}
	for _, d := range documents(t) {
		for _, match := range made.FindAllStringSubmatch(strings.Join(d.prose, "\n"), -1) {
			assert.True(t, targets[match[1]], "%s: %s", d.path, match[0])
		}
	}
	workflow := profiletest.FileBytes(t, filepath.Join(root, ".github", "workflows", "release.yml"))
	called := regexp.MustCompile(`\bmake ([a-z-]+) [A-Z]+=`).FindAllStringSubmatch(string(workflow), -1)
	require.Len(t, called, 2)
	for _, match := range called {
		assert.True(t, targets[match[1]], match[0])
	}
}

// Each page that a comment, a configuration or an error message names is there.
func TestNamedPages(t *testing.T) {
	names := append(files(t, ".go", ".yaml", ".yml", ".sh", ".txt", ".service"), root+"/Makefile", root+"/Dockerfile")
	for _, name := range names {
		content := profiletest.FileBytes(t, name)
		for _, path := range named.FindAllString(string(content), -1) {
			_, fromRoot := os.Stat(filepath.Join(root, path))
			_, fromHere := os.Stat(filepath.Join(filepath.Dir(name), path))
			assert.True(t, fromRoot == nil || fromHere == nil, "%s names %s", name, path)
		}
	}
}

// Code is in fenced blocks, which say how they are tested.
func TestCodeIsFenced(t *testing.T) {
	for _, d := range documents(t) {
		if strings.Contains(d.path, "testdata") {
			continue
		}
		for i := 1; i < len(d.prose); i++ {
			assert.False(t, d.prose[i-1] == "" && strings.HasPrefix(d.prose[i], "    "), "%s: %s", d.path, d.prose[i])
		}
	}
}

// A page answers one question within a few minutes of reading, and the index has it.
func TestPages(t *testing.T) {
	index := profiletest.FileBytes(t, "README.md")
	all := 0
	for _, d := range documents(t) {
		words := len(strings.Fields(d.text))
		name, isPage := strings.CutPrefix(d.path, filepath.Join(root, "docs")+"/")
		switch {
		case d.path == filepath.Join(root, "README.md"):
			assert.LessOrEqual(t, words, maxReadmeWords, d.path)
		case isPage && strings.HasPrefix(name, "decisions/"):
			// Decisions are history: they explain what they have to.
		case isPage:
			all += words
			assert.LessOrEqual(t, words, maxPageWords, d.path)
			if name != "README.md" {
				assert.Contains(t, string(index), "("+name+")", "the index lacks a page")
			}
		}
	}
	assert.LessOrEqual(t, all, maxWords)
}
