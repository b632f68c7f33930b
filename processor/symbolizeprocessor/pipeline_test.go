// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// A server that never responds blocks neither the pipeline nor the shutdown.
func TestSourceThatHangs(t *testing.T) {
	p := shop(t)
	asked := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close) // after the processor
	for _, maxWait := range []time.Duration{0, 20 * time.Millisecond} {
		h := start(t, func(c *Config) {
			c.MaxWait = maxWait
			c.Sources.Files.Enabled = false
			c.Sources.Debuginfod.Servers = []string{server.URL}
			c.Sources.Debuginfod.CacheDirectory = t.TempDir()
		})
		m := p.mapping(0x10000000, symbols.IDs{GNU: p.ids.GNU})
		assert.Equal(t, []string{""}, functions(h.pass(sampled(p.at(m, "main")))))
		<-asked
		assert.Equal(t, []string{""}, functions(h.pass(sampled(p.at(m, "exported")))))
	}
}

// A server must not send the collector's credentials to another one.
func TestDebuginfodRedirects(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the request arrived, with Authorization %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	var moved atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "secret", r.Header.Get("Authorization"))
		if strings.HasPrefix(r.URL.Path, "/buildid/") {
			http.Redirect(w, r, "/moved"+r.URL.Path, http.StatusFound)
			return
		}
		moved.Add(1)
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusFound)
	}))
	defer server.Close()
	h := start(t, func(c *Config) {
		c.Sources.Files.Enabled = false
		c.Sources.Debuginfod.Servers = []string{server.URL}
		c.Sources.Debuginfod.CacheDirectory = t.TempDir()
		c.Sources.Debuginfod.HTTP.Headers.Set("Authorization", "secret")
	})
	p := shop(t)
	mapping := p.mapping(0x10000000, symbols.IDs{GNU: p.ids.GNU})
	h.pass(sampled(p.at(mapping, "main")))
	assert.EqualValues(t, 1, moved.Load(), "a redirect within the server is followed")
}

// metric adds up a metric's points that have an attribute.
func (h *harness) metric(name, key, value string) int64 {
	h.tb.Helper()
	return collectortest.Sum(h.tb, h.telemetry, "otelcol_processor_symbolize_"+name, key, value)
}

func TestMetrics(t *testing.T) {
	p := shop(t)
	h := start(t, nil)
	m := p.mapping(0x10000000, p.ids)
	other := p.mapping(0x20000000, symbols.IDs{GNU: strings.Repeat("ab", 20)})
	outside := p.at(m, "main")
	outside.Address = 1
	for range 2 {
		h.pass(sampled(p.at(m, "main"), p.at(m, "exported"), p.at(other, "main"), outside))
	}
	for _, expected := range []struct {
		name, key, value string
		count            int64
	}{
		{"lookups", "processor", "symbolize", 8},
		{"cached_lookups", "processor", "symbolize", 3},
		{"resolved_locations", "source", "file", 4},
		{"unresolved_locations", "reason", "mismatch", 2},
		{"unresolved_locations", "reason", "not_a_file", 2},
		{"unresolved_locations", "reason", "pending", 0},
		{"cache_entries", "processor", "symbolize", 3},
		{"modules", "processor", "symbolize", 2},
		{"open_files", "processor", "symbolize", 1},
		{"queued_modules", "processor", "symbolize", 0},
	} {
		assert.Equal(t, expected.count, h.metric(expected.name, expected.key, expected.value), "%+v", expected)
	}
	assert.Positive(t, h.metric("cache_bytes", "processor", "symbolize"))
	_, err := h.telemetry.GetMetric("otelcol_processor_symbolize_source_duration")
	require.NoError(t, err)
}
