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
}
