// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

// load reads the processor's section as the Collector does.
func load(section string) (*Config, error) {
	return collectortest.LoadYAML(createDefaultConfig().(*Config), section)
}

func TestEveryKeyIsRead(t *testing.T) {
	c, err := load(`
max_wait: 1s
lines: true
demangle: simple
files: {enabled: false, roots: [/host], proc_path: /host/proc, without_build_id: true}
debug_directories: [/debug]
debuginfod:
  servers: [https://debuginfod.example.org]
  http: {timeout: 3s}
  cache_directory: /cache
  max_cache_bytes: 2000000
uploads: {directory: /uploads}
cache_bytes: 7000000
`)
	require.NoError(t, err)
	expected := createDefaultConfig().(*Config)
	expected.MaxWait = time.Second
	l, s := &expected.Lookup, &expected.Sources
	l.Lines, l.Demangle, l.CacheBytes = true, "simple", 7_000_000
	s.Files = sources.FilesConfig{Roots: []string{"/host"}, ProcPath: "/host/proc", WithoutBuildID: true}
	s.DebugDirectories = []string{"/debug"}
	s.Debuginfod.Servers, s.Debuginfod.HTTP.Timeout = []string{"https://debuginfod.example.org"}, 3*time.Second
	s.Debuginfod.CacheDirectory, s.Debuginfod.MaxCacheBytes = "/cache", 2_000_000
	s.Uploads.Directory = "/uploads"
	assert.Equal(t, expected, c)
}

func TestValidate(t *testing.T) {
	for section, message := range map[string]string{
		"max_wait: -1s":                              "`max_wait` must not be negative, found -1s",
		"demangle: some":                             "`demangle` must be full, templates, simple or none, found \"some\"",
		"cache_bytes: 1":                             "`cache_bytes` must be at least 1048576, found 1",
		"files: {roots: [host]}":                     "`files.roots` must be an absolute path, found \"host\"",
		"files: {proc_path: proc}":                   "`files.proc_path`",
		"debug_directories: [debug]":                 "`debug_directories`",
		"uploads: {directory: up}":                   "`uploads.directory`",
		"debuginfod: {servers: [ftp://a]}":           "`debuginfod.servers` must be an http or https URL with a host, found \"ftp://a\"",
		"debuginfod: {servers: ['http://a']}":        "`debuginfod.cache_directory` must be set",
		"debuginfod: {cache_directory: c}":           "`debuginfod.cache_directory`",
		"debuginfod: {http: {endpoint: 'http://a'}}": "`debuginfod.http.endpoint`",
		"debuginfod: {max_cache_bytes: 1}":           "`debuginfod.max_cache_bytes`",
	} {
		_, err := load(section)
		assert.ErrorContains(t, err, message, section)
	}
}
