// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outsideOfConventions are attributes that the semantic conventions do not have.
var outsideOfConventions = map[string]string{
	"deployment.environment": "deployment.environment.name until 1.26; senders still use it",

	// Written by this project: what a pprof says and the conventions have no name for.
	"pprof.scope.profile_name":      "which profile a group of sample types is",
	"pprof.mapping.start":           "of a mapping whose start is not before its limit",
	"pprof.mapping.limit":           "of a mapping whose start is not before its limit",
	"pprof.profile.time_nanos":      "of a pprof whose samples have times outside of it",
	"pprof.profile.duration_nanos":  "of a pprof whose samples have times outside of it",
	"pprof.profile.timestamp_label": "the label that held the times of samples",
	"pprof.profile.timestamp_unit":  "the unit of that label",

	// The words of Splunk's agents and of Java's thread dumps.
	"thread.os.id": "", "thread.state": "", "thread.stack.truncated": "",
}

// name matches the whole name of an attribute in a namespace that the conventions have; a name that ends with a dot is
// a prefix.
var name = regexp.MustCompile(
	`^(process|pprof|profile\.frame|thread|container|host|os|deployment|service|telemetry\.sdk)\.[a-z0-9_.]*[a-z0-9_]$`)

// The attributes that the code names are those of the semantic conventions, or are listed above.
func TestAttributesAreThoseOfTheConventions(t *testing.T) {
	published, err := os.ReadFile(filepath.Join("testdata", "semconv-1.43.txt"))
	require.NoError(t, err)
	conventions := strings.Fields(string(published))
	used := map[string]string{}
	for _, root := range []string{"internal", "receiver", "processor", "exporter", "connector", "extension",
		"cmd/profiletool"} {
		require.NoError(t,
			filepath.WalkDir(filepath.Join("..", "..", filepath.FromSlash(root)),
				func(path string, _ fs.DirEntry, err error) error {
					isProduct := strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") &&
						!strings.Contains(path, "testdata") &&
						!slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "testing")
					if err != nil || !isProduct {
						return err
					}
					file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
					if err != nil {
						return err
					}
					ast.Inspect(file, func(n ast.Node) bool {
						if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
							if text, err := strconv.Unquote(literal.Value); err == nil && name.MatchString(text) {
								used[text] = path
							}
						}
						return true
					})
					return nil
				}))
	}
	require.Greater(t, len(used), 30)
	for attribute, path := range used {
		if _, isListed := outsideOfConventions[attribute]; !isListed {
			assert.Contains(t, conventions, attribute, path)
		}
	}
	for attribute := range outsideOfConventions {
		assert.NotEmpty(t, used[attribute], "the list has %s, which nothing uses", attribute)
		assert.NotContains(t, conventions, attribute, "the conventions have it now")
	}
}
