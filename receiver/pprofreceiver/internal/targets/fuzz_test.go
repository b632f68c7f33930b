// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"net/url"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/stretchr/testify/require"
)

// FuzzJob reads arbitrary text as a job, and relabels a target with each valid one: nothing panics, no target is
// invalid, and the printed job can be read again.
func FuzzJob(f *testing.F) {
	f.Add("job_name: a"+someDiscovery, "__address__", "h:1")
	f.Add(withSecrets, "__param_x", "y")
	f.Add(onlyMemory+"params: {a: [x, y]}\nrelabel_configs: [{action: labelmap, regex: (.+), replacement: 'seen_$1'}]",
		"__scheme__", "https")
	f.Add(onlyMemory+
		"relabel_configs: [{target_label: '${1}', regex: '(.*)', source_labels: [x]}, {action: hashmod, modulus: 3, target_label: y}]", "x", "__address__")
	f.Add("job_name: [a]\nscrape_interval: {}\nprofiles: {custom: [x]}\nstatic_configs: {a: b}", "", "")
	f.Add("job_name: a\nkubernetes_sd_configs: [{role: pod, selectors: [{role: node}]}]\nbasic_auth: null\nhttp_headers: null", "a", "b")
	f.Fuzz(func(t *testing.T, config, name, value string) {
		cfg, err := load(config)
		if err != nil {
			return
		}
		require.Contains(t, cfg.String(), "job_name")
		targets, _ := cfg.group([]*targetgroup.Group{{Targets: []model.LabelSet{
			{"__address__": "h:1", model.LabelName(name): model.LabelValue(value)}, {"__address__": "h:1"},
		}}}, newMemo())
		for _, target := range targets {
			require.NotEmpty(t, target.Endpoints)
			require.Positive(t, target.Interval)
			for _, e := range target.Endpoints {
				require.Greater(t, e.Timeout, e.Recording)
				require.Contains(t, []string{"http", "https"}, e.URL.Scheme)
				again, err := url.Parse(e.URL.String())
				require.NoError(t, err)
				require.Equal(t, e.URL.Host, again.Host)
			}
		}
	})
}

// FuzzAddress reads arbitrary text as an address: a valid one has the same host and port in a URL.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"h", "h:1", "[::1]:1", "::1", "fe80::1%eth0", "[fe80::1%25eth0]:80", "h:", ":1", "a@b:1",
		"[]", "[", "ü:1", "127.1", "%41:1", "h:01", "0::1%\xff", "\xff:1", "fe80::1%ü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseAddress(text)
		if err != nil {
			return
		}
		made := url.URL{Scheme: "http", Host: a.urlHost(), Path: "/"}
		u, err := url.Parse(made.String())
		require.NoError(t, err, made.String())
		require.Equal(t, a.host, u.Hostname())
		again, err := parseAddress(a.urlHost())
		require.NoError(t, err)
		require.Equal(t, a, again)
	})
}
