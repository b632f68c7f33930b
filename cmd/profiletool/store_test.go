// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The blocks of a directory are listed, checked and read while a collector has the directory.
func TestStore(t *testing.T) {
	dir := t.TempDir()
	s := store.New(store.Config{
		Window: time.Hour, Resolution: time.Second, MaxBytes: 64 << 20, MaxSeries: 100,
		Disk: store.DiskConfig{Directory: dir, Retention: 1000 * time.Hour, MaxBytes: 1 << 30,
			Report: func(string, error) {}},
	})
	require.NoError(t, s.Open())
	now := time.Now().Add(-3 * time.Hour)
	for range 3 {
		pd := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(now.UnixNano()),
			1e9).
			Sample(profiletest.Value(1_000_000, "leaf", "main"))
		s.Add(pd.Build(), now)
		now = now.Add(time.Hour)
	}
	s.Maintain(now)
	defer func() { require.NoError(t, s.Close()) }()

	assert.Contains(t, must(t, "store", "ls", dir), "samples")
	assert.Equal(t, exitOK, run(t, nil, "store", "check", dir).code)
	assert.Contains(t, must(t, "top", "--store", dir), "3ms")
	assert.Contains(t, must(t, "top", "-store", dir, "-service", "shop", "-since", "150m"), "2ms")
	cart := run(t, nil, "top", "-store", dir, "-service", "cart").log
	assert.Contains(t, cart, `there is no service "cart"; there are shop`)
	hour := now.Add(-time.Hour)
	newest := fmt.Sprintf("to %s; newer ones, up to an hour, are in the memory",
		hour.Add(time.Second).UTC().Format(time.RFC3339))
	assert.Contains(t, cart, newest)
	assert.Contains(t, cart, "profiletool top 'http://localhost:4042/profiles/cart/process_cpu?seconds=3600'")
	assert.Contains(t, run(t, nil, "top", "--store", dir).log, newest)
	assert.Contains(t, run(t, nil, "top", "-store", dir, "file").log, "do not go together")
	exported := filepath.Join(t.TempDir(), "shop.pb.gz")
	must(t, "pprof", "-proto", "-output", exported, "-store", dir)
	assert.Contains(t, must(t, "top", exported), "3ms")

	// What is too long to be kept is found by the name that it was sent with, in files, too.
	long := strings.Repeat("long", 100)
	pd := profiletest.New().Resource("service.name", long).Profile(long, "count").
		Time(uint64(now.UnixNano()), 1e9).Sample(profiletest.Value(7, "leaf"), profiletest.Value(1, "main")).Build()
	s.Add(pd, now)
	s.Maintain(now.Add(time.Hour))
	data := profiletest.Marshal(t, pd)
	file := write(t, "long.otlp", string(data))
	for _, sampleType := range []string{long, long + "/count"} {
		assert.Contains(t, must(t, "top", "-store", dir, "-service", long, "-type", sampleType), "of 8 total")
		assert.Contains(t, must(t, "top", "-service", long, "-type", sampleType, file), "of 8 total")
	}

	files := profiletest.Glob(t, filepath.Join(dir, "blocks", "*", "stacks.parquet"))
	b := profiletest.FileBytes(t, files[0])
	b[len(b)/2] ^= 1
	require.NoError(t, os.WriteFile(files[0], b, 0o600))
	checked := run(t, nil, "store", "check", dir)
	assert.Equal(t, exitFound, checked.code)
	assert.Contains(t, checked.log, "stacks.parquet")
	assert.Equal(t, exitFailed, run(t, nil, "store", "ls", t.TempDir()).code)
}
