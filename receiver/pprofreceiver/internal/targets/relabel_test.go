// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// found returns a group with one target for each list of pairs.
func found(targets ...[]string) []*targetgroup.Group {
	g := &targetgroup.Group{Source: "test"}
	for _, pairs := range targets {
		g.Targets = append(g.Targets, with(model.LabelSet{}, pairs...))
	}
	return []*targetgroup.Group{g}
}

// onlyMemory is a job with one kind, to which tests add keys.
const onlyMemory = `
job_name: j
static_configs: [{targets: [replaced]}]
profiles: {process_cpu: {enabled: false}, goroutine: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}
`

func TestURLs(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		labels []string
		want   string
	}{
		"plain":               {"", []string{"__address__", "h:1"}, "memory http://h:1/debug/pprof/allocs"},
		"no port":             {"", []string{"__address__", "h"}, "memory http://h/debug/pprof/allocs"},
		"IPv6":                {"", []string{"__address__", "[::1]:1"}, "memory http://[::1]:1/debug/pprof/allocs"},
		"IPv6 without a port": {"", []string{"__address__", "[::1]"}, "memory http://[::1]/debug/pprof/allocs"},
		"bare IPv6":           {"", []string{"__address__", "fd00::1"}, "memory http://[fd00::1]/debug/pprof/allocs"},
		"configured": {"scheme: https\npath_prefix: /p/\nparams: {a: [x, y], b: [z]}",
			[]string{"__address__", "h:1"}, "memory https://h:1/p/debug/pprof/allocs?a=x&a=y&b=z"},
		"found": {"path_prefix: /p\nparams: {a: [x, y]}",
			[]string{"__address__", "h:1", "__scheme__", "https", "__profile_path_prefix__", "q", "__profile_path__", "heap",
				"__param_a", "1", "__param_c", "2"}, "memory https://h:1/q/heap?a=1&a=y&c=2"},
		"no metrics path": {"", []string{"__address__", "h:1", "__metrics_path__", "/metrics"},
			"memory http://h:1/debug/pprof/allocs"},
		"no seconds": {"", []string{"__address__", "h:1", "__param_seconds", "5"},
			"memory http://h:1/debug/pprof/allocs"},
		"by rules": {
			`relabel_configs: [{target_label: __address__, replacement: "proxy:80"}, {source_labels: [__profile_name__], target_label: __param_kind}, {target_label: __profile_path__, replacement: /x}]`, []string{"__address__", "h:1"}, "memory http://proxy:80/x?kind=memory"},
		"by a rule for a kind": {
			`relabel_configs: [{source_labels: [__profile_name__], regex: memory, target_label: __address__, replacement: "h:2"}]`, []string{"__address__", "h:1"}, "memory http://h:2/debug/pprof/allocs"},
		"a path's odd letters": {"", []string{"__address__", "h:1", "__profile_path__", "/a b/ü%"},
			"memory http://h:1/a%20b/%C3%BC%25"},
	} {
		t.Run(name, func(t *testing.T) {
			job := mustLoad(t, onlyMemory+tc.config)
			targets, report := job.group(found(tc.labels), newMemo())
			assert.Equal(t, []string{tc.want}, urls(Update{Targets: targets}), report.Examples)
			assert.Equal(t, mustLoad(t, onlyMemory+tc.config).Params, job.Params, "the configuration is read only")
		})
	}
}

func TestParamsOfKinds(t *testing.T) {
	targets, _ := mustLoad(t, `
job_name: j
static_configs: [{targets: [replaced]}]
params: {all: [x], gc: ["0", "9"]}
profiles: {process_cpu: {enabled: false}, memory: {params: {gc: ["1"]}}, block: {enabled: false}, mutex: {enabled: false}}
`).group(found([]string{"__address__", "h:1"}), newMemo())
	assert.Equal(t, []string{
		"memory http://h:1/debug/pprof/allocs?all=x&gc=1", "goroutine http://h:1/debug/pprof/goroutine?all=x&gc=0&gc=9",
	}, urls(Update{Targets: targets}))
}

func TestInvalidTargets(t *testing.T) {
	for name, tc := range map[string]struct {
		labels []string
		says   string
	}{
		"no address": {[]string{"a", "b"}, "`__address__`: the address is empty"},
		"a URL":      {[]string{"__address__", "http://h/x"}, "write host:port"},
		"no port":    {[]string{"__address__", "h:http"}, "the port must be a number"},
		"scheme": {[]string{"__address__", "h:1", "__scheme__", "ftp"},
			"`__scheme__` must be http or https, found \"ftp\""},
		"interval": {[]string{"__address__", "h:1", "__scrape_interval__", "soon"},
			"`__scrape_interval__`: not a valid duration string"},
		"no interval": {[]string{"__address__", "h:1", "__scrape_interval__", "0s"},
			"`__scrape_interval__` must be positive, found 0s"},
		"timeout": {[]string{"__address__", "h:1", "__scrape_timeout__", "0s"},
			"`__scrape_timeout__` must be positive"},
		"a query": {[]string{"__address__", "h:1", "__profile_path__", "/x?y=z"},
			"must have no query (see `__param_<name>`)"},
		"not UTF-8":     {[]string{"__address__", "h:1", "a", "\xff"}, "label \"a\" must be UTF-8"},
		"not UTF-8 too": {[]string{"__address__", "h:1", "\xff", "a"}, "must be UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			// Another target is not affected.
			targets, report := mustLoad(t, onlyMemory).group(found(tc.labels, []string{"__address__", "ok:1"}), newMemo())
			assert.Equal(t, []string{"memory http://ok:1/debug/pprof/allocs"}, urls(Update{Targets: targets}))
			assert.Equal(t, 2, report.Discovered)
			assert.Equal(t, [NumDropReasons]int{DropInvalid: 1}, report.Dropped)
			require.Len(t, report.Examples, 1)
			assert.Equal(t, "memory", report.Examples[0].Profile)
			assert.Contains(t, report.Examples[0].Detail, tc.says)
		})
	}
}

func TestTimes(t *testing.T) {
	const cpuAndMemory = `
job_name: j
scrape_interval: 30s
static_configs: [{targets: [replaced]}]
profiles: {goroutine: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, custom: {fixed: {path: /f, seconds: 20}}}
`
	times := func(config string, labels ...string) []string {
		targets, report := mustLoad(t, cpuAndMemory+config).group(found(append([]string{"__address__", "h:1"}, labels...)),
			newMemo())
		var all []string
		for _, target := range targets {
			for _, e := range target.Endpoints {
				all = append(all, fmt.Sprint(e.Profile.Name, " ", target.Interval, " ", e.Recording, " ", e.Timeout, " ",
					e.URL.RawQuery))
			}
		}
		for _, d := range report.Examples {
			all = append(all, d.Profile+": "+d.Detail)
		}
		return all
	}
	assert.Equal(t, []string{"process_cpu 30s 29s 34s seconds=29", "memory 30s 0s 30s ", "fixed 30s 20s 30s seconds=20"},
		times(""))
	assert.Equal(t, []string{"process_cpu 30s 29s 34s seconds=29", "memory 30s 0s 10s ", "fixed 30s 20s 25s seconds=20"},
		times("scrape_timeout: 10s"))
	assert.Equal(t, []string{"process_cpu 30s 29s 40s seconds=29", "memory 30s 0s 40s ", "fixed 30s 20s 40s seconds=20"},
		times("scrape_timeout: 40s"))
	assert.Equal(t,
		[]string{"process_cpu 1m0s 59s 1m4s seconds=59", "memory 1m0s 0s 5s ", "fixed 1m0s 20s 25s seconds=20"},
		times("", "__scrape_interval__", "1m", "__scrape_timeout__", "5s"))
	assert.Equal(t,
		[]string{"process_cpu 10s 9s 30s seconds=9", "memory 10s 0s 30s ",
			"fixed: seconds must be below `scrape_interval` (10s) and not negative, found 20"},
		times("", "__scrape_interval__", "10s"))
	assert.Equal(t, []string{"process_cpu 30s 3s 30s seconds=3", "memory 30s 0s 30s ", "fixed 30s 3s 30s seconds=3"},
		times("", "__param_seconds", "3"))
	assert.Equal(t, []string{
		"memory 30s 0s 30s ", "process_cpu: `__param_seconds` must be a positive number of seconds, found \"x\"",
		"fixed: `__param_seconds` must be a positive number of seconds, found \"x\"",
	}, times("", "__param_seconds", "x"))
}

// A rule can scrape one kind less often, which becomes a target of its own.
func TestIntervalOfAKind(t *testing.T) {
	targets, _ := mustLoad(t, `
job_name: j
static_configs: [{targets: [replaced]}]
relabel_configs: [{source_labels: [__profile_name__], regex: goroutine, target_label: __scrape_interval__, replacement: 5m}]
`).group(found([]string{"__address__", "h:1"}), newMemo())
	require.Len(t, targets, 2)
	intervals := map[string]time.Duration{}
	for _, target := range targets {
		for _, e := range target.Endpoints {
			intervals[e.Profile.Name] = target.Interval
		}
	}
	assert.Equal(t, map[string]time.Duration{
		"process_cpu": 15 * time.Second, "memory": 15 * time.Second, "goroutine": 5 * time.Minute, "block": 15 * time.Second,
		"mutex": 15 * time.Second,
	}, intervals)
	assert.True(t, targets[0].Resource.Equal(targets[1].Resource))
}

func TestLabels(t *testing.T) {
	targets, report := mustLoad(t, onlyMemory+`
scrape_timeout: 3s
params: {a: [x, y]}
relabel_configs:
  - {source_labels: [__meta_env], target_label: deployment.environment.name}
  - {action: labelmap, regex: __meta_pod_label_(.+), replacement: "k8s.pod.label.$1"}
  - {source_labels: [job, __scheme__, __scrape_interval__, __scrape_timeout__, __param_a, __profile_path_prefix__, __profile_path__, __profile_name__], target_label: seen}
  - {source_labels: [__address__], target_label: __tmp_x}
`).group(found([]string{"__address__", "h:1", "__meta_env", "dev", "__meta_pod_label_tier", "gold"}), newMemo())
	require.Len(t, targets, 1, report.Examples)
	assert.Equal(t, labels.FromStrings(
		"deployment.environment.name", "dev", "instance", "h:1", "job", "j", "k8s.pod.label.tier", "gold",
		"seen", "j;http;15s;3s;x;;/debug/pprof/allocs;memory",
	), targets[0].Labels)
	attributes := targets[0].Resource.AsRaw()
	assert.Equal(t, "dev", attributes["deployment.environment.name"])
	assert.Equal(t, "gold", attributes["k8s.pod.label.tier"])
	assert.NotContains(t, attributes, "job")
	assert.NotContains(t, attributes, "instance")
	assert.Equal(t, "dev", targets[0].Discovered.Get("__meta_env"))
	assert.Empty(t, targets[0].Discovered.Get("__profile_name__"))
}
