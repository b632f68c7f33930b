// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/self"
)

// A configuration for collector-contrib's receiver of the same name works unchanged. Its keys are those of
// scraperhelper's controller config for the three sources that poll, and of confighttp's client and server configs.
func TestConfigOfContrib(t *testing.T) {
	text := profiletest.FileBytes(t, filepath.Join("testdata", "contrib.yaml"))
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
	const job = "{job_name: a, static_configs: [{targets: [h]}]}"
	const pyroscope = "server: {endpoint: 'localhost:0', pyroscope: "
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
		"a URL as address": {"server: {endpoint: 'http://localhost:4040'}",
			[]string{"server: `endpoint` must be a host and a port, such as localhost:4040, found \"http://localhost:4040\""}},
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
		"no glob": {"file: {include: '/tmp/[a'}", []string{"`include` must be a glob, in which each [ and { is closed, or follows a \\, found \"/tmp/[a\""}},
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

		"no formats":         {"self: {}\nformats: []", []string{"must name a format"}},
		"an unknown format":  {"self: {}\nformats: [ppf]", []string{`found "ppf"`}},
		"self without pprof": {"self: {}\nformats: [folded]", []string{"must have pprof"}},
		"an unknown mode":    {"self: {}\ngo_trace: {mode: sums}", []string{`found "sums"`}},
		"a negative time":    {"self: {}\ngo_trace: {min_duration: -1s}", []string{"must not be negative"}},
		"misspelt go_trace":  {"self: {}\ngo_trace: {min_durations: 1s}", []string{"min_durations"}},
		"an empty label":     {"self: {}\ntimestamp_labels: ['']", []string{"timestamp_labels"}},

		"no jobs": {"scrape: {max_concurrent: 0}",
			[]string{"scrape: `max_concurrent` must be positive, found 0", "`configs` must have a job"}},
		"misspelt configs": {"scrape: {config: []}", []string{"config"}},
		"misspelt in a job": {"scrape: {configs: [{job_name: a, scrape_intervall: 1s}]}",
			[]string{`configs[0]`, "job \"a\": `scrape_intervall` is not a key here"}},
		"an empty job": {"scrape: {configs: [null]}", []string{"`configs` must not have an empty entry"}},
		"no list":      {"scrape: {configs: {job_name: a}}", []string{"configs"}},
		"same names": {"scrape: {configs: [" + job + ", " + job + "]}",
			[]string{"`job_name` must be unique, found \"a\" twice"}},
		"in a job's values": {"scrape: {configs: [{job_name: a, scheme: ftp}]}",
			[]string{"scrape: configs::0: job \"a\": `scheme` must be http or https",
				"job \"a\": there must be a service discovery"}},
		"no address of the page": {"scrape: {configs: [" + job + "], status: {endpoint: ''}}",
			[]string{"`endpoint` must be set"}},
		"misspelt page": {"scrape: {configs: [" + job + "], status: {endpiont: a}}", []string{"endpiont"}},

		"formats of Pyroscope": {pyroscope + "{formats: [trie], session_id: drop}}",
			[]string{`server: pyroscope: `, `found "trie"`, "`session_id` must be the name of an attribute"}},
		"no formats of Pyroscope": {pyroscope + "{formats: []}}", []string{"`formats` must not be empty"}},
		"two labels of one name": {pyroscope + "{labels: {a: x, b: x}}}",
			[]string{"`labels.b` must differ from `labels.a`, found \"x\" in both"}},
		"a session as the service": {pyroscope + "{session_id: service.name, tenant_attribute: x}}",
			[]string{"`session_id` must differ from `labels.service_name`"}},
		"a session as the tenant": {pyroscope + "{session_id: x, tenant_attribute: x}}",
			[]string{"`session_id` must differ from `tenant_attribute`"}},
		"misspelt in Pyroscope": {pyroscope + "{labels: {service_name: drop, a: '', b: ''}, more: 1}}", []string{"more"}},
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
