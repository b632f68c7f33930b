// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/lookup"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

// load reads the processor's section as the Collector does.
func load(section string) (*Config, error) {
	return collectortest.LoadYAML(createDefaultConfig().(*Config), section)
}

func TestConfigStruct(t *testing.T) {
	require.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	_, err := load("{}")
	require.NoError(t, err)
}

func TestUnknownKeysAreRefused(t *testing.T) {
	for _, section := range []string{"linez: true", "debuginfod: {server: a}", "debuginfod: {http: {timeot: 3s}}"} {
		_, err := load(section)
		require.Error(t, err, section)
	}
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
  max_file_bytes: 3000000
  missing_interval: 4s
  initial_backoff: 5s
  max_backoff: 6s
uploads: {directory: /uploads, refresh_interval: 7s}
workers: 3
queue_size: 4
max_modules: 5
max_pending_addresses: 6
cache_bytes: 7000000
max_file_bytes: 8
max_table_bytes: 9000000
max_work_bytes: 10000000
max_open_files: 11
max_open_bytes: 12
keep_open: 13s
retry_interval: 14s
report_interval: 15s
`)
	require.NoError(t, err)
	expected := &Config{
		MaxWait: time.Second, ReportInterval: 15 * time.Second,
		Lookup: lookup.Config{
			Lines: true, Demangle: "simple", Workers: 3, QueueSize: 4, MaxModules: 5, MaxPendingAddresses: 6,
			CacheBytes: 7_000_000, MaxOpenFiles: 11, MaxOpenBytes: 12, KeepOpen: 13 * time.Second, RetryInterval: 14 * time.Second,
		},
		Sources: sources.Config{
			Files:            sources.FilesConfig{Roots: []string{"/host"}, ProcPath: "/host/proc", WithoutBuildID: true},
			DebugDirectories: []string{"/debug"},
			Debuginfod: sources.DebuginfodConfig{
				Servers: []string{"https://debuginfod.example.org"}, HTTP: c.Sources.Debuginfod.HTTP, CacheDirectory: "/cache",
				MaxCacheBytes: 2_000_000, MaxFileBytes: 3_000_000, MissingInterval: 4 * time.Second,
				InitialBackoff: 5 * time.Second, MaxBackoff: 6 * time.Second,
			},
			Uploads:      sources.UploadsConfig{Directory: "/uploads", RefreshInterval: 7 * time.Second},
			MaxFileBytes: 8, MaxTableBytes: 9_000_000, MaxWorkBytes: 10_000_000,
		},
	}
	assert.Equal(t, 3*time.Second, c.Sources.Debuginfod.HTTP.Timeout)
	assert.Equal(t, expected, c)
}

func TestValidate(t *testing.T) {
	for section, message := range map[string]string{
		"max_wait: -1s":                              "`max_wait` must be at least 0s, found -1s",
		"demangle: some":                             "`demangle` must be full, templates, simple or none, found \"some\"",
		"workers: 0":                                 "`workers` must be at least 1, found 0",
		"queue_size: 0":                              "`queue_size`",
		"max_modules: 0":                             "`max_modules`",
		"max_pending_addresses: 0":                   "`max_pending_addresses`",
		"cache_bytes: 1":                             "`cache_bytes` must be at least 1048576, found 1",
		"max_file_bytes: 0":                          "`max_file_bytes`",
		"max_table_bytes: 1":                         "`max_table_bytes`",
		"max_work_bytes: 1":                          "`max_work_bytes`",
		"max_open_files: -1":                         "`max_open_files`",
		"max_open_bytes: -1":                         "`max_open_bytes`",
		"keep_open: 0s":                              "`keep_open`",
		"retry_interval: 0s":                         "`retry_interval` must be at least 1s, found 0s",
		"report_interval: -1s":                       "`report_interval`",
		"files: {roots: [host]}":                     "`files.roots` must be an absolute path, found \"host\"",
		"files: {proc_path: proc}":                   "`files.proc_path`",
		"debug_directories: [debug]":                 "`debug_directories`",
		"uploads: {directory: up}":                   "`uploads.directory`",
		"uploads: {refresh_interval: 0s}":            "`uploads.refresh_interval`",
		"debuginfod: {servers: [ftp://a]}":           "`debuginfod.servers` must be an http or https URL with a host, found \"ftp://a\"",
		"debuginfod: {servers: ['http://a']}":        "`debuginfod.cache_directory` must be set",
		"debuginfod: {cache_directory: c}":           "`debuginfod.cache_directory`",
		"debuginfod: {http: {endpoint: 'http://a'}}": "`debuginfod.http.endpoint`",
		"debuginfod: {max_cache_bytes: 1}":           "`debuginfod.max_cache_bytes`",
		"debuginfod: {max_file_bytes: 1}":            "`debuginfod.max_file_bytes`",
		"debuginfod: {missing_interval: 0s}":         "`debuginfod.missing_interval`",
		"debuginfod: {initial_backoff: 0s}":          "`debuginfod.initial_backoff`",
		"debuginfod: {max_backoff: 1ms}":             "`debuginfod.max_backoff` must be at least 1s, found 1ms",
	} {
		_, err := load(section)
		assert.ErrorContains(t, err, message, section)
	}
}
