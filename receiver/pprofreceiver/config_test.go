// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/self"
)

// A configuration for collector-contrib's receiver of the same name works unchanged. Its keys are those of
// scraperhelper's controller config for the three sources that poll, and of confighttp's client and server configs.
func TestConfigOfContrib(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "contrib.yaml"))
	require.NoError(t, err)
	cfg, err := loadConfig(string(text))
	require.NoError(t, err)

	remoteConfig := cfg.Remote.Get()
	require.NotNil(t, remoteConfig)
	assert.Equal(t, "http://my-svc:9090/debug/pprof/profile?seconds=1", remoteConfig.Client.Endpoint)
	assert.Equal(t, 30*time.Second, remoteConfig.CollectionInterval)
	assert.Equal(t, 10*time.Second, remoteConfig.InitialDelay)
	assert.Equal(t, time.Minute, remoteConfig.Client.Timeout)
	assert.True(t, remoteConfig.Client.TLS.InsecureSkipVerify)

	fileConfig := cfg.File.Get()
	require.NotNil(t, fileConfig)
	assert.Equal(t, "/tmp/pprof/*", fileConfig.Include)
	assert.Equal(t, 20*time.Second, fileConfig.CollectionInterval)
	assert.Equal(t, 2*time.Second, fileConfig.InitialDelay)
	assert.Equal(t, 3*time.Second, fileConfig.Timeout)
	assert.Equal(t, "keep", fileConfig.AfterRead)

	selfConfig := cfg.Self.Get()
	require.NotNil(t, selfConfig)
	assert.Equal(t, self.Config{
		CollectionInterval: 15 * time.Second, InitialDelay: time.Second, Timeout: 4 * time.Second,
		BlockProfileFraction: 5, MutexProfileFraction: 10,
	}, *selfConfig)

	server := cfg.Server.Get()
	require.NotNil(t, server)
	assert.Equal(t, "0.0.0.0:4040", server.HTTP.NetAddr.Endpoint)
	assert.Equal(t, int64(1<<20), server.HTTP.MaxRequestBodySize)
}

func TestConfigSectionsAreOptional(t *testing.T) {
	for _, only := range []string{"server:", "self:", "self: {}", "server: {endpoint: 'localhost:1'}",
		"remote: {endpoint: 'http://h'}", "file: {include: '*.pb.gz'}",
		"scrape: {configs: [{job_name: j, static_configs: [{targets: [h]}]}]}"} {
		t.Run(only, func(t *testing.T) {
			cfg, err := loadConfig(only)
			require.NoError(t, err)
			values := 0
			for _, has := range []bool{cfg.Server.HasValue(), cfg.Remote.HasValue(), cfg.Scrape.HasValue(), cfg.File.HasValue(),
				cfg.Self.HasValue()} {
				if has {
					values++
				}
			}
			assert.Equal(t, 1, values)
		})
	}
}

func TestConfigFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		says   []string
	}{
		"nothing": {"limits: {max_profile_bytes: 0}",
			[]string{"at least one of `server`, `remote`, `scrape`, `file` and `self`",
				"`max_profile_bytes` must be positive, found 0"}},
		"huge": {"self:\nlimits: {max_profile_bytes: 4611686018427387904}",
			[]string{"`max_profile_bytes` must be at most 1099511627776, found 4611686018427387904"}},
		"no address": {"server: {endpoint: ''}", []string{"server: `endpoint` must be set"}},
		"no URL": {"remote: {collection_interval: 0s, initial_delay: -1s, timeout: -1s}",
			[]string{"`endpoint` must be an http or https URL with a host, found \"\"",
				"`collection_interval` must be positive, found 0s", "`initial_delay` must not be negative, found -1s",
				"`timeout` must not be negative"}},
		"no http": {"remote: {endpoint: 'ftp://me:secret@h/p'}",
			[]string{`must be an http or https URL with a host, found "ftp://REDACTED:REDACTED@h/p"`}},
		"no host": {"remote: {endpoint: 'localhost:6060'}", []string{"must be an http or https URL"}},
		"a secret": {"remote: {endpoint: 'http://u:se cret@h'}",
			[]string{"`endpoint` must be an http or https URL with a host, found \"REDACTED\""}},
		"no files": {"file: {after_read: burn, collection_interval: -1s}",
			[]string{"`include` must be set", "`after_read` must be keep, delete or move, found \"burn\"",
				"`collection_interval` must be positive"}},
		"no glob": {"file: {include: '/tmp/[a'}", []string{"`include` must be a glob, found \"/tmp/[a\""}},
		"nowhere": {"file: {include: '*', after_read: move}",
			[]string{"`move_to` must be set with `after_read: move`"}},
		"somewhere": {"file: {include: '*', move_to: /tmp}",
			[]string{"`move_to` must be set with `after_read: move` and only then"}},
		"self": {"self: {collection_interval: 0s}", []string{"self: `collection_interval` must be positive"}},
		"a list": {"self:\nresource_attributes: {a: [1], '': x}",
			[]string{"scalar values, found []interface {} for \"a\"", "empty key"}},
		"a misspelt key": {"remote: {endpoint: 'http://h', collection_intervall: 1s, timeuot: 1s}",
			[]string{"invalid keys: collection_intervall, timeuot"}},
		"misspelt server": {"server: {endpont: 'localhost:1'}", []string{"invalid keys: endpont"}},
		"misspelt file":   {"file: {includes: '*'}", []string{"includes"}},
		"misspelt source": {"sever: {}", []string{"sever"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadConfig(tc.config)
			require.Error(t, err)
			for _, part := range tc.says {
				assert.ErrorContains(t, err, part)
			}
			assert.NotContains(t, err.Error(), "cret")
		})
	}
}
