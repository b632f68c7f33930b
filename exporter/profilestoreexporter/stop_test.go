// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestoreexporter

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// An exporter that is shut down while a day becomes one block, which takes hundreds of reads, ends after a few more,
// and the next one can use the directory, as after a reload. Nothing is lost, and the day is joined later.
func TestShutdownWhileBlocksAreJoined(t *testing.T) {
	const hours, services = 24, 20
	dir := t.TempDir()
	day := time.Now().UTC().Truncate(24 * time.Hour).Add(-48 * time.Hour)
	fillDay(t, dir, day, hours, services)
	joined := filepath.Join(dir, "blocks", day.Format("20060102-")) // the names of hours go on otherwise
	config := map[string]any{"storage": map[string]any{"directory": dir}}
	joining := make(chan struct{})
	var once sync.Once
	var reads atomic.Int64
	blockfile.SetFault(func(op, path string) error {
		if op == "create" && strings.HasPrefix(path, joined) {
			once.Do(func() { close(joining) })
		}
		select {
		case <-joining:
			if op == "read" {
				reads.Add(1)
				time.Sleep(20 * time.Millisecond)
			}
		default:
		}
		return nil
	})
	t.Cleanup(func() { blockfile.SetFault(nil) })
	f := startExporter(t, config)
	select {
	case <-joining:
	case <-time.After(time.Minute):
		require.FailNow(t, "the day does not become one block")
	}
	before := reads.Load()
	f.stop()
	toStop := reads.Load() - before
	var all atomic.Int64
	blockfile.SetFault(func(op, _ string) error {
		if op == "read" {
			all.Add(1)
		}
		return nil
	})
	again := startExporter(t, config)
	assert.Equal(t, hours*services, again.store.Stats().Profiles)
	assert.Zero(t, again.store.Stats().Damaged)
	require.Eventually(t, func() bool { return again.store.Stats().DiskBlocks == 1 }, time.Minute, 10*time.Millisecond)
	assert.Equal(t, hours*services, again.store.Stats().Profiles)
	assert.Less(t, toStop, all.Load()/20, "reads")
}

// fillDay fills a directory with the blocks of a day that wait to become one.
func fillDay(t *testing.T, dir string, day time.Time, hours, services int) {
	t.Helper()
	s := store.New(store.Config{
		MaxBytes: 64 << 20, MaxSeries: 1000,
		Disk: store.DiskConfig{
			Directory: dir, Retention: 14 * 24 * time.Hour, MaxBytes: 1 << 30,
			Report: func(message string, err error) { t.Errorf("%s: %v", message, err) },
		},
	})
	require.NoError(t, s.Open())
	for hour := range hours {
		start := day.Add(time.Duration(hour) * time.Hour)
		for service := range services {
			s.Add(profiletest.New().Resource("service.name", fmt.Sprint("service-", service)).Profile("cpu", "nanoseconds").
				Time(uint64(start.UnixNano()), 10e9).Sample(profiletest.Value(1, "leaf")).Build(), start.Add(10*time.Second))
		}
	}
	s.Maintain(day.Add(23*time.Hour + 59*time.Minute))
	require.Greater(t, len(s.Blocks()), 4)
	require.NoError(t, s.Close())
}
