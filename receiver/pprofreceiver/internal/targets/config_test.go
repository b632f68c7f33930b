// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	promhttp "github.com/prometheus/prometheus/discovery/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"
)

const someDiscovery = "\nstatic_configs: [{targets: ['localhost:6060']}]\n"

func TestDefaults(t *testing.T) {
	cfg := mustLoad(t, "job_name: a"+someDiscovery)
	assert.Equal(t, 15*time.Second, cfg.ScrapeInterval)
	assert.Equal(t, 15*time.Second, cfg.ScrapeTimeout)
	assert.Equal(t, "http", cfg.Scheme)
	assert.True(t, cfg.HTTPClient.FollowRedirects)
	assert.Equal(t, []ProfileConfig{
		{Name: "process_cpu", Enabled: true, Path: "/debug/pprof/profile", Seconds: 14, fitted: true},
		{Name: "memory", Enabled: true, Path: "/debug/pprof/allocs", Delta: true},
		{Name: "goroutine", Enabled: true, Path: "/debug/pprof/goroutine"},
		{Name: "block", Enabled: true, Path: "/debug/pprof/block", Delta: true},
		{Name: "mutex", Enabled: true, Path: "/debug/pprof/mutex", Delta: true},
		{Name: "fgprof", Enabled: false, Path: "/debug/fgprof", Seconds: 14, fitted: true},
		{Name: "trace", Enabled: false, Path: "/debug/pprof/trace", Seconds: 1},
	}, cfg.Profiles)
}

// A configuration with every key of the documentation, and those of Prometheus' HTTP client.
func TestEveryKey(t *testing.T) {
	cfg := mustLoad(t, `
job_name: shop
scrape_interval: 1m
scrape_timeout: 18s
scheme: https
params: {tenant: [a, b]}
path_prefix: /internal
basic_auth: {username: me, password_file: /run/secret}
tls_config: {insecure_skip_verify: true, server_name: shop}
proxy_url: http://proxy:3128
follow_redirects: false
http_headers: {X-Team: {values: [shop]}}
static_configs: [{targets: ["localhost:6060"], labels: {service_name: shop}}]
file_sd_configs: [{files: [/etc/targets/*.json], refresh_interval: 10s}]
http_sd_configs: [{url: "http://sd:8080/targets", refresh_interval: 30s, authorization: {credentials: x}}]
dns_sd_configs: [{names: [_pprof._tcp.shop.example], type: SRV}]
kubernetes_sd_configs: [{role: pod, namespaces: {names: [shop]}, selectors: [{role: pod, field: spec.nodeName=n}]}]
relabel_configs:
  - {source_labels: [__meta_kubernetes_pod_label_env], target_label: deployment.environment.name}
  - {action: labelmap, regex: __meta_kubernetes_pod_label_(.+), replacement: "k8s.pod.label.$1"}
profiles:
  process_cpu: {seconds: 30}
  memory: {path: /debug/pprof/heap, delta: false, params: {gc: ["1"]}}
  block: {enabled: false}
  fgprof: {enabled: true}
  trace: {enabled: true, seconds: 2}
  custom: {zeta: {path: /z, enabled: false}, mine: {path: /debug/pprof/mine, seconds: 5}}
`)
	assert.Equal(t, time.Minute, cfg.ScrapeInterval)
	assert.Equal(t, 18*time.Second, cfg.ScrapeTimeout)
	assert.Equal(t, url.Values{"tenant": {"a", "b"}}, cfg.Params)
	assert.Equal(t, "/internal", cfg.PathPrefix)
	assert.Equal(t, "me", cfg.HTTPClient.BasicAuth.Username)
	assert.True(t, cfg.HTTPClient.TLSConfig.InsecureSkipVerify)
	assert.False(t, cfg.HTTPClient.FollowRedirects)
	assert.Equal(t, "http://proxy:3128", cfg.HTTPClient.ProxyURL.String())
	var kinds []string
	for _, d := range cfg.Discovery {
		kinds = append(kinds, d.Name())
	}
	assert.ElementsMatch(t, []string{"static", "file", "http", "dns", "kubernetes"}, kinds)
	assert.Len(t, cfg.RelabelConfigs, 2)
	assert.Equal(t, []ProfileConfig{
		{Name: "process_cpu", Enabled: true, Path: "/debug/pprof/profile", Seconds: 30},
		{Name: "memory", Enabled: true, Path: "/debug/pprof/heap", Params: url.Values{"gc": {"1"}}},
		{Name: "goroutine", Enabled: true, Path: "/debug/pprof/goroutine"},
		{Name: "block", Enabled: false, Path: "/debug/pprof/block", Delta: true},
		{Name: "mutex", Enabled: true, Path: "/debug/pprof/mutex", Delta: true},
		{Name: "fgprof", Enabled: true, Path: "/debug/fgprof", Seconds: 59, fitted: true},
		{Name: "trace", Enabled: true, Path: "/debug/pprof/trace", Seconds: 2},
		{Name: "mine", Enabled: true, Path: "/debug/pprof/mine", Seconds: 5},
		{Name: "zeta", Enabled: false, Path: "/z"},
	}, cfg.Profiles)
}

func TestDefaultSecondsFollowTheInterval(t *testing.T) {
	for interval, want := range map[string]int{"10s": 9, "15s": 14, "1m": 59, "2500ms": 1, "2s": 1, "1500ms": 1} {
		assert.Equal(t, want, mustLoad(t, "job_name: a\nscrape_interval: "+interval+someDiscovery).Profiles[0].Seconds,
			interval)
	}
}

func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		says   []string
	}{
		"nothing": {"{}",
			[]string{"`job_name` must be set",
				"there must be a service discovery: one of `dns_sd_configs`, `file_sd_configs`, `http_sd_configs`, `kubernetes_sd_configs`, `static_configs`"}},
		"no discovery": {"job_name: a\nstatic_configs: []",
			[]string{`job "a": there must be a service discovery`}},
		"an empty discovery": {"job_name: a\nstatic_configs: [null]",
			[]string{"job \"a\": `static_configs[0]`: empty or null section in static_configs"}},
		"no targets": {"job_name: a\nstatic_configs: [{targets: [], labels: {x: y}}]",
			[]string{`job "a": ` + "`static_configs[0].targets` must not be empty"}},
		"intervals": {"job_name: a\nscrape_interval: 0s\nscrape_timeout: 0s" + someDiscovery,
			[]string{"job \"a\": `scrape_interval` must be positive, found 0s",
				"job \"a\": `scrape_timeout` must be positive, found 0s"}},
		"negative interval": {"job_name: a\nscrape_interval: -1s" + someDiscovery,
			[]string{"job \"a\": `scrape_interval`: must be a duration in whole numbers of y, w, d, h, m, s and ms, as in 1h30m, found \"-1s\""}},
		"other durations": {
			"job_name: a\nscrape_interval: '15'\nfile_sd_configs: [{files: [x.json], refresh_interval: 1.5m}]",
			[]string{"`file_sd_configs[0].refresh_interval`: must be a duration in whole numbers of y, w, d, h, m, s and ms, as in 1h30m, found \"1.5m\""}},
		"a short interval": {"job_name: a\nscrape_interval: 1s" + someDiscovery,
			[]string{"job \"a\": `profiles.process_cpu.seconds` must be below `scrape_interval` (1s) and not negative, found 1"}},
		"long seconds": {
			"job_name: a\nprofiles: {process_cpu: {seconds: 15}, custom: {c: {path: /c, seconds: -1}}}" + someDiscovery,
			[]string{"`profiles.process_cpu.seconds` must be below `scrape_interval` (15s) and not negative, found 15",
				"`profiles.custom.c.seconds` must be below"}},
		"no seconds": {"job_name: a\nprofiles: {process_cpu: {seconds: 0}, goroutine: {seconds: 0}}" +
			someDiscovery, []string{"`profiles.process_cpu.seconds` must be positive"}},
		"huge seconds": {"job_name: a\nprofiles: {process_cpu: {seconds: 9223372036854775807}}" +
			someDiscovery, []string{"found 9223372036854775807"}},
		"scheme": {"job_name: a\nscheme: ftp" + someDiscovery,
			[]string{"job \"a\": `scheme` must be http or https, found \"ftp\""}},
		"a typo": {"job_name: a\nscrape_intervall: 1s" + someDiscovery,
			[]string{"job \"a\": `scrape_intervall` is not a key here"}},
		"a typo inside": {"job_name: a\nprofiles: {cpu: {}}\nrelabel_configs: [{sourcelabels: []}]" +
			someDiscovery, []string{"`profiles.cpu` is not a key here: the kinds are `process_cpu`",
			"`relabel_configs[0].sourcelabels` is not a key here"}},
		"a typo twice": {"job_name: a\nprofiles: {memory: {enable: true}, custom: {x: {enable: true}}}" + someDiscovery,
			[]string{"`profiles.memory.enable` is not a key here", "`profiles.custom.x.enable` is not a key here"}},
		"a discovery that is not built in": {"job_name: a\nconsul_sd_configs: [{server: h}]",
			[]string{"`consul_sd_configs` is not a key here; use one of `dns_sd_configs`"}},
		"keys of metrics": {"job_name: a\nmetrics_path: /metrics" + someDiscovery,
			[]string{"`metrics_path` is not a key here: use `path_prefix`"}},
		"keys of Alloy": {"job_name: a\nprofiling_config: {}" + someDiscovery,
			[]string{"`profiling_config` is not a key here: use `profiles`"}},
		"an interval without a unit": {"job_name: a\nscrape_interval: 15" + someDiscovery,
			[]string{"job \"a\": `scrape_interval`: 15 has no unit: write 15s"}},
		"a scheme in a target": {"job_name: a\nstatic_configs: [{targets: ['http://me:hunter2@h:1/x?token=hunter2']}]",
			[]string{"`static_configs[0].targets` must be addresses: found \"http://REDACTED:REDACTED@h:1/x\": write host:port, the scheme in `scheme`, and the path in `profiles` or `path_prefix`"}},
		"a user in a target": {"job_name: a\nstatic_configs: [{targets: ['me:hunter2@h:1']}]",
			[]string{"found \"REDACTED:REDACTED@h:1\": a user and password belong in `basic_auth`"}},
		"an empty target": {"job_name: a\nstatic_configs: [{targets: ['']}]", []string{"the address is empty"}},
		"bad ports": {
			"job_name: a\nstatic_configs: [{targets: ['h:0', 'h:65536', 'h:x', ':1', 'a b:1', '[h]:1', '[::1', 'a:b:1']}]",
			[]string{`found "h:0": the port must be a number from 1 to 65535`, `found "h:65536"`, `found "h:x"`,
				`found ":1": write host:port`, `found "a b:1"`, `found "[h]:1": brackets must hold an IPv6 address`, `found "[::1"`,
				`found "a:b:1"`}},
		"bad rules": {"job_name: a\nrelabel_configs: [{action: replace}, null, {action: keep, regex: x}]" +
			someDiscovery,
			[]string{"job \"a\": `relabel_configs[0]`: relabel configuration for replace action requires 'target_label' value",
				"job \"a\": `relabel_configs[1]` must not be empty"}},
		"an unknown action": {"job_name: a\nrelabel_configs: [{action: explode}]" + someDiscovery,
			[]string{"`relabel_configs[0].action`: unknown relabel action \"explode\""}},
		"a bad regex": {"job_name: a\nrelabel_configs: [{regex: '(', target_label: x}]" + someDiscovery,
			[]string{"job \"a\": `relabel_configs[0].regex`: error parsing regexp: missing closing"}},
		"nothing to scrape": {
			"job_name: a\nprofiles: {process_cpu: {enabled: false}, memory: {enabled: false}, goroutine: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}" + someDiscovery, []string{"`profiles` must have a kind that is enabled"}},
		"custom kinds": {
			"job_name: a\nprofiles: {custom: {memory: {path: /m}, 'a b': {path: m}, x: {path: '/m?gc=1'}, y: {}}}" +
				someDiscovery,
			[]string{"`profiles.custom.memory` must not be named like a standard kind: set `profiles.memory`",
				"`profiles.custom.a b` must have a name of 1 to 64 letters", "`profiles.custom.a b.path` must be a path that begins with /",
				"`profiles.custom.x.path` must be a path that begins with / and has no query (see `params`), found \"/m?gc=1\"",
				"`profiles.custom.y.path` must be a path"}},
		"names of custom kinds": {
			"job_name: a\nprofiles: {custom: {203: {path: /m}, " + strings.Repeat("x", 65) + ": {path: /m}}}" + someDiscovery,
			[]string{"`profiles.custom.203` must have a name of 1 to 64 letters, digits, `_`, `.` and `-` that begins with a letter or `_`, found \"203\" (3 bytes)", "x\" (65 bytes)"}},
		"seconds in params": {
			"job_name: a\nparams: {seconds: ['1']}\nprofiles: {memory: {params: {seconds: ['1']}}}" + someDiscovery,
			[]string{"`params` must not have `seconds`: set `profiles.<kind>.seconds`",
				"`profiles.memory.params` must not have `seconds`"}},
		"delta of a recording": {"job_name: a\nprofiles: {memory: {seconds: 5}}" + someDiscovery,
			[]string{"`profiles.memory` must not have both `delta` and `seconds`"}},
		"prefix": {"job_name: a\npath_prefix: /a?b" + someDiscovery,
			[]string{"`path_prefix` must be a path without a query"}},
		"two authorizations": {"job_name: a\nbearer_token: hunter2\nbasic_auth: {username: u, password: hunter2}" +
			someDiscovery,
			[]string{`job "a": at most one of basic_auth, oauth2, bearer_token & bearer_token_file must be configured`}},
		"a secret in the wrong place": {"job_name: a\nbasic_auth: hunter2" + someDiscovery, []string{"basic_auth"}},
		"another": {"job_name: a\ntls_config: hunter2" + someDiscovery,
			[]string{"job \"a\": `tls_config`: found a string where a section is expected"}},
		"a string for a list": {"job_name: a\nstatic_configs: [{targets: 'localhost:6060'}]\n",
			[]string{"job \"a\": `static_configs[0].targets`: found a string where a list is expected"}},
		"a section for a list": {"job_name: a\nstatic_configs: {targets: ['localhost:6060']}\n",
			[]string{"job \"a\": `static_configs`: found a section where a list is expected"}},
		"strings for others": {"job_name: a\nprofiles: {process_cpu: {seconds: 5s, enabled: 'yes'}}" + someDiscovery,
			[]string{"`profiles.process_cpu.seconds`: found a string where a number is expected",
				"`profiles.process_cpu.enabled`: found a string where true or false is expected"}},
		"a port for a target": {"job_name: a\nstatic_configs: [{targets: [6060]}]",
			[]string{`found "6060", which is a port without a host: write host:port, such as localhost:6060`}},
		"a number for a secret": {"job_name: a\nbasic_auth: {username: u, password: 1234}" + someDiscovery,
			[]string{"basic_auth.password", "string"}},
		"discovery's own faults": {"job_name: a\nkubernetes_sd_configs: [{role: pods}]\n",
			[]string{"job \"a\": `kubernetes_sd_configs[0].role`: unknown Kubernetes SD role \"pods\""}},
		"files": {"job_name: a\nfile_sd_configs: [{files: [x.txt]}]\n",
			[]string{"job \"a\": `file_sd_configs[0].files[0]`: path name \"x.txt\" is not valid for file discovery"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(tc.config)
			require.Error(t, err)
			for _, part := range tc.says {
				assert.ErrorContains(t, err, part)
			}
			assert.NotContains(t, err.Error(), "hunter2")
			assert.NotContains(t, err.Error(), "line ")
		})
	}
}

func TestRulesMayMakeAddresses(t *testing.T) {
	_, err := load(`
job_name: a
static_configs: [{targets: ["http://elsewhere/x"]}]
relabel_configs: [{target_label: __address__, replacement: "localhost:1"}]
`)
	assert.NoError(t, err)
}

func TestJobs(t *testing.T) {
	a, b := &Config{JobName: "a"}, &Config{JobName: "b"}
	assert.NoError(t, ValidateJobs([]*Config{a, b}))
	assert.EqualError(t, ValidateJobs([]*Config{a, b, a, nil}),
		"`job_name` must be unique, found \"a\" twice\n`configs` must not have an empty entry")
}

const withSecrets = `
job_name: a
basic_auth: {username: u, password: hunter2}
proxy_url: http://u:hunter2@proxy
http_headers: {X-Key: {secrets: [hunter2]}}
http_sd_configs: [{url: "http://sd/targets", oauth2: {client_id: i, client_secret: hunter2, token_url: "http://t"}}]
kubernetes_sd_configs: [{role: pod, api_server: "https://k", authorization: {credentials: hunter2}}]
profiles: {custom: {mine: {path: /m, seconds: 3}}}
`

func TestSecretsAreNeverPrinted(t *testing.T) {
	cfg := mustLoad(t, withSecrets)
	assert.Equal(t, "hunter2", string(cfg.HTTPClient.BasicAuth.Password))
	marshalled := confmap.New()
	require.NoError(t, marshalled.Marshal(cfg))
	asYAML, err := yaml.Marshal(marshalled.ToStringMap())
	require.NoError(t, err)
	for _, text := range []string{
		fmt.Sprintf("%v", cfg), fmt.Sprintf("%+v", *cfg), fmt.Sprintf("%#v", cfg), fmt.Sprintf("%s", []*Config{cfg}),
		string(asYAML),
	} {
		assert.NotContains(t, text, "hunter2")
		assert.Contains(t, text, "<secret>")
		assert.Contains(t, text, "job_name: a")
	}
}

// A section that is written and read again is the same, except for secrets.
func TestMarshal(t *testing.T) {
	cfg := mustLoad(t, withSecrets)
	marshalled := confmap.New()
	require.NoError(t, marshalled.Marshal(cfg))
	again := &Config{}
	require.NoError(t, again.Unmarshal(marshalled))
	assert.Equal(t, "<secret>", string(again.HTTPClient.BasicAuth.Password))
	assert.Equal(t, cfg.Profiles, again.Profiles)
	assert.Equal(t, cfg.String(), again.String())
}

// Text of digits from the environment is text, although YAML would read a number.
func TestTextOfTheEnvironment(t *testing.T) {
	conf := resolve(t, map[string]string{
		"test:config": `
job_name: ${test:number}
scrape_interval: ${test:interval}
basic_auth: {username: '${test:number}', password: '${test:octal}'}
params: {version: ['${test:version}'], empty: ['${test:empty}']}
http_headers: {X-Key: {values: ['${test:octal}', '${test:bool}', '${test:date}', '${test:null}']}}
profiles: {process_cpu: {seconds: "${test:seconds}"}, mutex: {enabled: "${test:bool}"}, block: "${test:section}"}
static_configs: [{targets: ["${test:target}"], labels: {service_version: "${test:version}", text: "${test:text}", empty: "${test:empty}"}}]
http_sd_configs: [{url: http://sd, basic_auth: {username: u, password: "${test:octal}"}}]
`,
		"test:octal":    "0123\n",
		"test:number":   "1e3",
		"test:version":  "1.10",
		"test:interval": "20s",
		"test:seconds":  "7 # of them",
		"test:bool":     "false",
		"test:date":     "2026-11-22",
		"test:null":     "null",
		"test:empty":    "",
		"test:text":     "a {b}",
		"test:target":   "h:1",
		"test:section":  "{path: /blocked}",
	})
	cfg := &Config{}
	require.NoError(t, cfg.Unmarshal(conf))
	assert.Equal(t, "1e3", cfg.JobName)
	assert.Equal(t, 20*time.Second, cfg.ScrapeInterval)
	assert.Equal(t, "0123", string(cfg.HTTPClient.BasicAuth.Password))
	assert.Equal(t, "1e3", cfg.HTTPClient.BasicAuth.Username)
	assert.Equal(t, url.Values{"version": {"1.10"}, "empty": {""}}, cfg.Params)
	assert.Equal(t, []string{"0123", "false", "2026-11-22"}, cfg.HTTPClient.HTTPHeaders.Headers["X-Key"].Values[:3])
	profiles := cfg.Profiles
	assert.Equal(t, 7, profiles[0].Seconds)
	assert.Equal(t, "/blocked", profiles[3].Path)
	assert.False(t, profiles[4].Enabled)
	for _, d := range cfg.Discovery {
		switch d := d.(type) {
		case discovery.StaticConfig:
			assert.Equal(t, "h:1", string(d[0].Targets[0]["__address__"]))
			assert.Equal(t, model.LabelSet{"service_version": "1.10", "text": "a {b}", "empty": ""}, d[0].Labels)
		case *promhttp.SDConfig:
			assert.Equal(t, "0123", string(d.HTTPClientConfig.BasicAuth.Password))
		default:
			t.Errorf("%T", d)
		}
	}
}

// resolve reads "test:config" as the collector reads its configuration, variables included.
func resolve(t *testing.T, texts testProvider) *confmap.Conf {
	t.Helper()
	resolver, err := confmap.NewResolver(confmap.ResolverSettings{
		URIs: []string{"test:config"},
		ProviderFactories: []confmap.ProviderFactory{
			confmap.NewProviderFactory(func(confmap.ProviderSettings) confmap.Provider { return texts })},
	})
	require.NoError(t, err)
	conf, err := resolver.Resolve(t.Context())
	require.NoError(t, err)
	return conf
}

type testProvider map[string]string

func (p testProvider) Retrieve(_ context.Context, uri string, _ confmap.WatcherFunc) (*confmap.Retrieved, error) {
	return confmap.NewRetrievedFromYAML([]byte(p[uri]))
}

func (testProvider) Scheme() string                 { return "test" }
func (testProvider) Shutdown(context.Context) error { return nil }
