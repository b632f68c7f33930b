// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScrapeConfig(t *testing.T) {
	cfg, err := loadConfig(`
scrape:
  max_concurrent: 8
  configs:
    - job_name: shop
      scrape_interval: 30s
      authorization: {credentials: s3cret}
      static_configs: [{targets: ["localhost:6060"], labels: {service_name: shop}}]
      profiles:
        block: {enabled: false}
        custom: {mine: {path: /debug/pprof/mine}}
    - job_name: fleet
      kubernetes_sd_configs: [{role: pod}]
`)
	require.NoError(t, err)
	scrape := cfg.Scrape.Get()
	require.NotNil(t, scrape)
	assert.Equal(t, 8, scrape.MaxConcurrent)
	require.Len(t, scrape.Configs, 2)
	assert.Equal(t, "shop", scrape.Configs[0].JobName)
	assert.Equal(t, 30*time.Second, scrape.Configs[0].ScrapeInterval)
	assert.Equal(t, "s3cret", string(scrape.Configs[0].HTTPClient.Authorization.Credentials))
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		assert.NotContains(t, fmt.Sprintf(format, scrape), "s3cret")
		assert.NotContains(t, fmt.Sprintf(format, *scrape.Configs[0]), "s3cret")
	}
}

func TestScrapeConfigFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		says   []string
	}{
		"nothing": {"scrape: {max_concurrent: 0}",
			[]string{"scrape: `max_concurrent` must be positive, found 0", "`configs` must have a job"}},
		"unknown key": {"scrape: {config: []}", []string{"config"}},
		"in a job": {"scrape: {configs: [{job_name: a, scrape_intervall: 1s}]}",
			[]string{`configs[0]`, "job \"a\": `scrape_intervall` is not a key here"}},
		"an empty job": {"scrape: {configs: [null]}", []string{"`configs` must not have an empty entry"}},
		"no list":      {"scrape: {configs: {job_name: a}}", []string{"configs"}},
		"same names": {
			"scrape: {configs: [{job_name: a, static_configs: [{targets: [h]}]}, {job_name: a, static_configs: [{targets: [h]}]}]}",
			[]string{"`job_name` must be unique, found \"a\" twice"},
		},
		"in a job's values": {"scrape: {configs: [{job_name: a, scheme: ftp}]}",
			[]string{"scrape: configs::0: job \"a\": `scheme` must be http or https", "job \"a\": there must be a service discovery"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadConfig(tc.config)
			require.Error(t, err)
			for _, part := range tc.says {
				assert.ErrorContains(t, err, part)
			}
		})
	}
}

func TestScrapeStatusConfig(t *testing.T) {
	const job = "scrape: {configs: [{job_name: a, static_configs: [{targets: [b]}]}]%s}"
	for given, want := range map[string]string{
		"": "", ", status: ": "localhost:4041", ", status: {endpoint: 'localhost:1'}": "localhost:1",
	} {
		cfg, err := loadConfig(fmt.Sprintf(job, given))
		require.NoError(t, err)
		status := cfg.Scrape.Get().Status.Get()
		if assert.Equal(t, want != "", status != nil, given) && status != nil {
			assert.Equal(t, want, status.HTTP.NetAddr.Endpoint)
		}
	}
	_, err := loadConfig(fmt.Sprintf(job, ", status: {endpoint: ''}"))
	assert.ErrorContains(t, err, "`endpoint` must be set")
	_, err = loadConfig(fmt.Sprintf(job, ", status: {endpiont: a}"))
	assert.ErrorContains(t, err, "endpiont")
}
