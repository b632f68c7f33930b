// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

func newResolver(tb testing.TB, change func(*Config, *sources.Config)) *Resolver {
	config := Config{
		Workers: 1, QueueSize: 8, MaxModules: 64, MaxPendingAddresses: 1 << 14, CacheBytes: 64 << 20, MaxOpenFiles: 8,
		KeepOpen: time.Minute, RetryInterval: time.Minute,
	}
	files := sources.Config{
		Files: sources.FilesConfig{Enabled: true, ProcPath: "/proc"}, Limits: symbols.DefaultLimits,
	}
	if change != nil {
		change(&config, &files)
	}
	finder := sources.NewFinder(files, &http.Client{}, func(sources.Request) {})
	r := New(config, finder, func(sources.Kind, time.Duration) {})
	tb.Cleanup(func() { require.NoError(tb, r.Close(context.Background())) })
	return r
}

// BenchmarkCachedLookup looks up addresses in the cache, 100 000 of them in 100 files.
func BenchmarkCachedLookup(b *testing.B) {
	r := newResolver(b, func(c *Config, _ *sources.Config) { c.MaxModules = 1000 })
	var modules []*Module
	for i := range 100 {
		m := r.Module(Key{IDs: symbols.IDs{GNU: fmt.Sprintf("%040x", i)}}, "file")
		modules = append(modules, m)
		for k := range uint64(1000) {
			r.cache.put(key{module: m.id, address: symbols.Position{Offset: k * 97}},
				&Answer{Frames: []symbols.Frame{{Name: "function"}}})
		}
	}
	b.ReportAllocs()
	before := profiletest.ProcessCPU()
	i := uint64(0)
	for b.Loop() {
		i += 7919
		if r.Lookup(modules[i%100], symbols.Position{Offset: i / 100 % 1000 * 97}) == nil {
			b.Fatal("not in the cache")
		}
	}
	// By processor time, since other processes may use the core meanwhile.
	b.ReportMetric(float64(b.N)/(profiletest.ProcessCPU()-before).Seconds(), "lookups/s/core")
}
