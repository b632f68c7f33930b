// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
)

func TestFaults(t *testing.T) {
	var faults Faults
	faults.Require(true, "`a` must be positive, found %d", 1)
	faults.Add(nil)
	require.NoError(t, faults.Err())
	faults.Require(false, "`b` must be positive, found %d", -1)
	faults.Require(false, "`c` must be readable: %w", io.EOF)
	faults.Add(errors.New("`d` must be set"))
	require.EqualError(t, faults.Err(), "`b` must be positive, found -1\n`c` must be readable: EOF\n`d` must be set")
	require.ErrorIs(t, faults.Err(), io.EOF)
}

func TestRequireKeys(t *testing.T) {
	var faults Faults
	faults.RequireKeys("keys", []string{"a", "b c"})
	require.NoError(t, faults.Err())
	faults.RequireKeys("keys", []string{"a", " b", "", "a"})
	require.EqualError(t, faults.Err(), "`keys` must not have spaces around an entry, found \" b\" (lists are written [a, b])\n"+
		"`keys` must not have an empty entry\n`keys` must be distinct, found \"a\" twice")
}

func TestRequireListener(t *testing.T) {
	for _, good := range []string{"localhost:4040", ":0", "[::1]:4040", "0.0.0.0:http", "/run/a.sock"} {
		var faults Faults
		address := confignet.AddrConfig{Endpoint: good, Transport: confignet.TransportTypeTCP}
		if good[0] == '/' {
			address.Transport = confignet.TransportTypeUnix
		}
		faults.RequireListener(&address)
		require.NoError(t, faults.Err(), good)
	}
	for _, bad := range []string{"", "localhost", "localhost:", "http://localhost:4040", "$PORT", "localhost:70000", "::1:4040"} {
		var faults Faults
		faults.RequireListener(&confignet.AddrConfig{Endpoint: bad, Transport: confignet.TransportTypeTCP})
		require.ErrorContains(t, faults.Err(), "`endpoint` must be ", bad)
	}
}

func TestRequireURL(t *testing.T) {
	for address, shown := range map[string]string{
		"http://localhost:4040": "", "https://u:secret@host/path?token=x": "",
		"": "", "localhost:4040": "localhost:4040", "ftp://host": "ftp://host", "http://": "http://",
		"http://host:port":            "http://host:port",
		"http://u:se cret@host":       redact.Placeholder,
		"ftp://u:secret@host?token=x": "ftp://REDACTED:REDACTED@host?token=REDACTED",
	} {
		var faults Faults
		faults.RequireURL("endpoint", address)
		if shown == "" && address != "" {
			require.NoError(t, faults.Err())
			continue
		}
		require.EqualError(t, faults.Err(),
			fmt.Sprintf("`endpoint` must be an http or https URL with a host, found %q", shown))
	}
}

// The errors are those of the Collector's own decoder.
func TestValues(t *testing.T) {
	const units = "is not a duration: the units are h, m, s and ms, as in "
	for value, want := range map[string]struct{ retention, maxBytes string }{
		"14d":     {retention: units + "336h"},
		"2 weeks": {retention: units + "336h"},
		"300":     {retention: units + "1h30m", maxBytes: "is not a number without quotes"},
		"soon":    {retention: units + "1h30m", maxBytes: "is not a number without quotes"},
		// Durations are nanoseconds in 64 bits.
		"10000000h":                     {retention: "is too long: at most 2562047h"},
		"2562047h1000000m":              {retention: "is too long: at most 2562047h"},
		"106752d":                       {retention: "is too long: at most 2562047h"},
		"9000000000000000000000 weeks":  {retention: "is too long: at most 2562047h"},
		"106751d":                       {retention: units + "2562024h"},
		"9999999k":                      {maxBytes: "is not a number without a unit: write 10239998976"},
		"2t":                            {maxBytes: "is not a number without a unit: write 2199023255552"},
		"99999999999999999999999999gib": {maxBytes: "is too large: at most 9223372036854775807"},
		"10GiB":                         {maxBytes: "is not a number without a unit: write 10737418240"},
		"512 mb":                        {maxBytes: "is not a number without a unit: write 512000000"},
		"64k":                           {maxBytes: "is not a number without a unit: write 65536"},
	} {
		storage := map[string]any{}
		if want.retention != "" {
			storage["retention"] = value
		}
		if want.maxBytes != "" {
			storage["max_bytes"] = value
		}
		conf := confmap.NewFromStringMap(map[string]any{"store": map[string]any{"storage": storage}, "other": "14d"})
		v := &Values{}
		require.Empty(t, v.Explain("'storage.retention' time: unknown unit"), "nothing is loaded")
		require.NoError(t, v.Factory().Create(confmap.ConverterSettings{}).Convert(t.Context(), conf))
		var into struct {
			Store struct {
				Storage struct {
					Retention time.Duration `mapstructure:"retention"`
					MaxBytes  int64         `mapstructure:"max_bytes"`
				} `mapstructure:"storage"`
			} `mapstructure:"store"`
			Other string `mapstructure:"other"`
		}
		err := conf.Unmarshal(&into)
		require.Error(t, err)
		var lines []string
		if want.retention != "" {
			lines = append(lines, "`store.storage.retention`: \""+value+"\" "+want.retention)
		}
		if want.maxBytes != "" {
			lines = append(lines, "`store.storage.max_bytes`: \""+value+"\" "+want.maxBytes)
		}
		assert.ElementsMatch(t, lines, v.Explain(err.Error()), err.Error())
	}
}

// The unit of a key counts, and a list is shown as one.
func TestExplainKeys(t *testing.T) {
	v := &Values{}
	require.NoError(t, v.Convert(t.Context(), confmap.NewFromStringMap(map[string]any{
		"processors": map[string]any{"memory_limiter": map[string]any{"limit_mib": "1Gi", "spike_limit_mib": "200MB"}},
		"service":    map[string]any{"pipelines": map[string]any{"profiles/a": map[string]any{"exporters": "a, b"}}},
		"receivers": map[string]any{"pprof": map[string]any{"endpoint": 4040, "version": 7, "keep": "yes",
			"drop": "False", "send": "perhaps"}},
	})))
	var into struct {
		Processors map[string]struct {
			Limit uint32 `mapstructure:"limit_mib"`
			Spike uint32 `mapstructure:"spike_limit_mib"`
		} `mapstructure:"processors"`
		Receivers map[string]struct {
			Endpoint string `mapstructure:"endpoint"`
			Version  string `mapstructure:"version"`
			Keep     bool   `mapstructure:"keep"`
			Drop     bool   `mapstructure:"drop"`
			Send     bool   `mapstructure:"send"`
		} `mapstructure:"receivers"`
		Service struct {
			Pipelines map[string]struct {
				Exporters []component.ID `mapstructure:"exporters"`
			} `mapstructure:"pipelines"`
		} `mapstructure:"service"`
	}
	err := v.last.Unmarshal(&into)
	require.Error(t, err)
	assert.ElementsMatch(t, []string{
		"`processors.memory_limiter.limit_mib`: \"1Gi\" is not a number without a unit: write 1024",
		"`processors.memory_limiter.spike_limit_mib`: \"200MB\" is not a number without a unit: write 191",
		"`service.pipelines.profiles/a.exporters`: \"a, b\" is not a list: write [a, b]",
		"`receivers.pprof.endpoint`: \"4040\" is a port without a host: write localhost:4040",
		"`receivers.pprof.version`: \"7\" is a number: write it in quotes",
		"`receivers.pprof.keep`: \"yes\" is not true or false: write true, without quotes",
		"`receivers.pprof.drop`: \"False\" is not true or false: write false, without quotes",
		"`receivers.pprof.send`: \"perhaps\" is not true or false",
	}, v.Explain(err.Error()), err.Error())
}

// The Collector takes a number for nanoseconds, and one that is too large for a negative one.
func TestMisreadNumbers(t *testing.T) {
	convert := func(yaml string) error {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		return (&Values{}).Convert(t.Context(), conf)
	}
	for yaml, want := range map[string]string{
		"receivers: {pprof: {remote: {collection_interval: 10}}}":                                                                      "`receivers.pprof.remote.collection_interval`: 10 has no unit, and would be nanoseconds: write 10s",
		"exporters: {otlp_grpc/a: {retry_on_failure: {max_elapsed_time: 5}}}":                                                          "`exporters.otlp_grpc/a.retry_on_failure.max_elapsed_time`: 5 has no unit",
		"processors: {dictionary_dedup: {timeout: 200, max_wait: 3}}":                                                                  "`processors.dictionary_dedup.max_wait`: 3 has no unit",
		"exporters: {a: {headers: {X-Key: \"hunter2\\n\"}}}":                                                                           "`exporters.a.headers.X-Key` must not have a line break, which HTTP refuses: remove it from the file or the environment variable",
		"exporters: {a: {hec: {token: \"hunter2\\r\\n\"}}}":                                                                            "`exporters.a.hec.token` must not have a line break",
		"extensions: {file_storage: {timeout: 1}}":                                                                                     "`extensions.file_storage.timeout`: 1 has no unit",
		"exporters: {store: {max_bytes: 99999999999999999999}}":                                                                        "`exporters.store.max_bytes`: 1e+20 is too large: at most 9223372036854775807",
		"exporters: {store: {max_bytes: 9223372036854775808}}":                                                                         "`exporters.store.max_bytes`: 9223372036854775808 is too large",
		"exporters: {store: {retention: -1e30}}":                                                                                       "`exporters.store.retention`: -1e+30 is too large",
		"{receivers: {pprof: {server: {auth: {authenticator: basicauth/a}}}}, service: {pipelines: {profiles: {receivers: [pprof]}}}}": "`receivers.pprof.server.auth.authenticator`: add the extension \"basicauth/a\" to `service.extensions`",
		"{exporters: {x: {sending_queue: {storage: b}}}, service: {extensions: [a], pipelines: {profiles: {exporters: [x]}}}}":         "`exporters.x.sending_queue.storage`: add the extension \"b\"",
	} {
		require.ErrorContains(t, convert(yaml), want)
	}
	for _, yaml := range []string{
		"receivers: {pprof: {remote: {collection_interval: 10s, timeout: 0, initial_delay: 1000000000}}}",
		"service: {telemetry: {metrics: {readers: [], interval: 60, timeout: 100}}}",
		"exporters: {otlp_grpc: {retry_on_failure: {max_elapsed_time: 0}, sending_queue: {queue_size: 10, num_consumers: 1}}}",
		"exporters: {store: {max_bytes: 1e10, fraction: 0.5}}",
		"{exporters: {store: {storage: {directory: a}}, x: {sending_queue: {storage: a}}, unused: {sending_queue: {storage: c}}}, " +
			"service: {extensions: [b, a], pipelines: {profiles: {exporters: [store, x]}}}}",
		"receivers:",
	} {
		require.NoError(t, convert(yaml))
	}
	// Two servers cannot have one address. Clients have none, nor have components of no pipeline.
	for servers, want := range map[string]string{
		"receivers: {a: {protocols: {grpc: {endpoint: localhost:4317}}}, b: {protocols: {http: {endpoint: 127.0.0.1:4317}}}}": "`receivers.b.protocols.http.endpoint`: receivers.a.protocols.grpc.endpoint listens on 127.0.0.1:4317 already",
		"receivers: {a: {server: {endpoint: 0.0.0.0:1}, scrape: {status: {endpoint: localhost:1}}}}":                          "`receivers.a.server.endpoint`: receivers.a.scrape.status.endpoint listens on 0.0.0.0:1 already",
		"receivers: {a: {server: {endpoint: localhost:1}}}, extensions: {zpages/z: {endpoint: ':1'}}":                         "`receivers.a.server.endpoint`: extensions.zpages/z.endpoint listens on localhost:1 already",
		"receivers: {a: {server: {endpoint: localhost:1}}, b: {server: {endpoint: 10.0.0.1:1}}}":                              "",
		"receivers: {a: {server: {endpoint: localhost:0}}, b: {server: {endpoint: localhost:0}}}":                             "",
		"receivers: {a: {server: {endpoint: localhost:1}}}, exporters: {a: {endpoint: localhost:1}}":                          "",
		"receivers: {a: {server: {endpoint: localhost:1}}, unused: {server: {endpoint: localhost:1}}}":                        "",
		"receivers: {a: {server: {endpoint: localhost:1}}}, extensions: {zpages: {endpoint: localhost:1}}":                    "",
	} {
		err := convert("{" + servers + ", service: {extensions: [zpages/z], pipelines: {p: {receivers: [a, b], exporters: [a]}}}}")
		if want == "" {
			require.NoError(t, err, servers)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

// What a configuration has stays, and the defaults join it.
func TestTelemetryDefaults(t *testing.T) {
	reader := func(host string, port int) any {
		return []any{
			map[string]any{
				"pull": map[string]any{"exporter": map[string]any{"prometheus": map[string]any{"host": host, "port": port}}}}}
	}
	logs := map[string]any{"disable_caller": true, "disable_zap_resource": true, "disable_stacktrace": true}
	own := []any{map[string]any{"periodic": map[string]any{"interval": 1000}}}
	for name, tt := range map[string]struct {
		env       map[string]string
		conf      map[string]any
		telemetry map[string]any
	}{
		"none": {nil, map[string]any{"service": map[string]any{"pipelines": nil}},
			map[string]any{"logs": logs, "metrics": map[string]any{"readers": reader("localhost", 8888)}}},
		"variable": {map[string]string{"METRICS_HOST": "::", "METRICS_PORT": "1"}, nil,
			map[string]any{"logs": logs, "metrics": map[string]any{"readers": reader("::", 1)}}},
		"own": {nil, map[string]any{"service": map[string]any{"telemetry": map[string]any{
			"logs":    map[string]any{"level": "debug", "disable_caller": false},
			"metrics": map[string]any{"readers": own, "level": "detailed"}, "traces": nil,
		}}}, map[string]any{
			"logs": map[string]any{"level": "debug", "disable_caller": false, "disable_zap_resource": true,
				"disable_stacktrace": true},
			"metrics": map[string]any{"readers": own, "level": "detailed"}, "traces": nil,
		}},
		"empty sections": {nil,
			map[string]any{"service": map[string]any{"telemetry": map[string]any{"logs": nil, "metrics": nil}}},
			map[string]any{"logs": logs, "metrics": map[string]any{"readers": reader("localhost", 8888)}}},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range tt.env {
				t.Setenv(key, value)
			}
			conf := confmap.NewFromStringMap(tt.conf)
			require.NoError(t, telemetry{}.Convert(t.Context(), conf))
			assert.Equal(t, tt.telemetry, conf.ToStringMap()["service"].(map[string]any)["telemetry"])
		})
	}
	for _, port := range []string{"http", "-1", "70000"} {
		t.Setenv("METRICS_PORT", port)
		require.ErrorContains(t, telemetry{}.Convert(t.Context(), confmap.New()), "METRICS_PORT must be a port")
	}
}

// An empty variable of a folder, in any configuration, is as if it were not set.
func TestEmptyFolders(t *testing.T) {
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir("../../../config", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		for _, match := range regexp.MustCompile(`\$\{env:(\w+):-[^}]*\}/`).FindAllStringSubmatch(string(content), -1) {
			found[match[1]] = true
		}
		return err
	}))
	require.Len(t, found, 4)
	for name := range found {
		t.Setenv(name, "")
	}
	t.Setenv("OTHER", "")
	NewTelemetryFactory()
	for name := range found {
		_, isSet := os.LookupEnv(name)
		assert.False(t, isSet, name)
	}
	_, isSet := os.LookupEnv("OTHER")
	assert.True(t, isSet)
}
