// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blocks"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// threeHours returns the configuration of a store that was closed with three blocks.
func threeHours(t *testing.T) (cfg Config, reports *[]string) {
	t.Helper()
	cfg, reports = diskConfig(t, memoryDir(t)), &[]string{}
	cfg.Disk.Report = func(message string, err error) { *reports = append(*reports, fmt.Sprint(message, ": ", err)) }
	s := open(t, cfg)
	keepHours(s, 3)
	require.Len(t, s.Blocks(), 3)
	require.NoError(t, s.Close())
	return cfg, reports
}

// Without the list of blocks, or with a wrong bit in it, all blocks serve, and nothing is deleted.
func TestStartWithoutTheListOfBlocks(t *testing.T) {
	cfg, reports := threeHours(t)
	file := filepath.Join(cfg.Disk.Directory, blocks.ManifestFile)
	list := profiletest.FileBytes(t, file)
	start := func(context string) {
		t.Helper()
		*reports = nil
		s := open(t, cfg)
		require.EqualValues(t, 3, sum(t, s, allOfShop), context)
		require.Len(t, *reports, 1, context)
		require.Contains(t, (*reports)[0], "the list of blocks cannot be read", context)
		require.NoError(t, s.Close())
	}
	for i := 0; i < len(list); i += 5 {
		changed := append([]byte(nil), list...)
		changed[i] ^= 1
		require.NoError(t, os.WriteFile(file, changed, 0o600))
		start(fmt.Sprint("byte ", i))
	}
	require.NoError(t, os.Remove(file))
	start("no list")
	*reports = nil
	s := open(t, cfg)
	require.Empty(t, *reports, "it was written again")
	require.NoError(t, s.Close())
}

// A kill while a block is deleted leaves a part of it. Without the list, that is not taken for a damaged block.
func TestHalfDeletedBlockWithoutTheList(t *testing.T) {
	cfg, reports := threeHours(t)
	s := open(t, cfg)
	killed := ""
	blockfile.SetFault(func(op, path string) error {
		if op != "remove" || killed != "" || os.Remove(filepath.Join(path, blockfile.IndexFile)) != nil {
			return nil
		}
		killed = memoryDir(t)
		return os.CopyFS(killed, os.DirFS(cfg.Disk.Directory))
	})
	s.Maintain(noon.Truncate(24 * time.Hour).Add(26 * time.Hour)) // they become one
	blockfile.SetFault(nil)
	require.Len(t, s.Blocks(), 1)
	require.NoError(t, s.Close())
	*reports = nil
	cfg.Disk.Directory = killed
	require.NoError(t, os.Remove(filepath.Join(killed, blocks.ManifestFile)))
	s = open(t, cfg)
	require.Len(t, *reports, 1)
	require.Contains(t, (*reports)[0], "the list of blocks cannot be read")
	require.Len(t, s.Blocks(), 2, "an hour that is not deleted yet, and all of them as one; the log has the last")
	require.NoError(t, s.Close())
}

// A list that a later version wrote is not understood: the store does not start, and leaves everything as it is.
func TestListOfBlocksOfAnotherVersion(t *testing.T) {
	cfg, _ := threeHours(t)
	file := filepath.Join(cfg.Disk.Directory, blocks.ManifestFile)
	require.NoError(t, blockfile.WriteSealed(file, &blocks.Manifest{Version: blocks.Version + 1}))
	require.ErrorContains(t, New(cfg).Open(), file+" has version 2, but this program reads version 1")
	blocks, err := os.ReadDir(filepath.Join(cfg.Disk.Directory, "blocks"))
	require.NoError(t, err)
	assert.Len(t, blocks, 3)
}

// What is below blocks and not in the list is rubbish. A block of the list that somebody deleted is reported once.
func TestTheListOfBlocksIsTrue(t *testing.T) {
	cfg, reports := threeHours(t)
	folder := filepath.Join(cfg.Disk.Directory, blocks.Folder)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	rubbish := filepath.Join(folder, "20261121T00-000000ff")
	require.NoError(t, os.CopyFS(rubbish, os.DirFS(filepath.Join(folder, entries[0].Name()))))
	reader := cfg
	reader.Disk.ReadOnly = true
	s := open(t, reader)
	require.Len(t, s.Blocks(), 3)
	require.NoError(t, s.Close())
	assert.DirExists(t, rubbish, "another process may be about to list it")
	list := profiletest.FileBytes(t, filepath.Join(cfg.Disk.Directory, blocks.ManifestFile))
	s = open(t, reader)
	s.drop(s.disk.blocks[0], blockfile.ErrDamaged)
	require.Len(t, s.Blocks(), 2)
	require.NoError(t, s.Close())
	again := profiletest.FileBytes(t, filepath.Join(cfg.Disk.Directory, blocks.ManifestFile))
	assert.Equal(t, string(list), string(again), "a reader changes nothing")
	*reports = nil
	require.NoError(t, os.RemoveAll(filepath.Join(folder, entries[1].Name())))
	for starts := range 2 {
		s = open(t, cfg)
		assert.EqualValues(t, 2, sum(t, s, allOfShop))
		assert.NoDirExists(t, rubbish)
		assert.Zero(t, s.Stats().Damaged)
		require.Len(t, *reports, 1, "start %d", starts)
		require.Contains(t, (*reports)[0], "somebody has deleted "+filepath.Join(folder, entries[1].Name()))
		require.NoError(t, s.Close())
	}
}

// sizeOf returns the bytes below a directory.
func sizeOf(dir string) (n int64) {
	_ = filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			n += info.Size()
		}
		return nil
	})
	return n
}

// storage.max_bytes holds while blocks are joined. A day that is more than an eighth of it stays as it is.
func TestMaxBytesHoldWhileBlocksAreJoined(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	for _, c := range []struct {
		name                string
		days, allowed       int
		isJoined, isEvicted bool
	}{{"there is room", 2, 20, true, false}, {"the oldest go for the new one", 13, 8, true, true},
		{"a day is too large", 2, 2, false, false}} {
		t.Run(c.name, func(t *testing.T) {
			cfg := diskConfig(t, memoryDir(t))
			cfg.Disk.MaxBytes = 1 << 40
			s := open(t, cfg)
			day := noon.Truncate(24 * time.Hour)
			most, size := int64(0), int64(0)
			blocks := filepath.Join(cfg.Disk.Directory, "blocks")
			var watching sync.Mutex // the log is synced beside it
			watch := func(op, _ string) error {
				if op == "sync" || op == "remove" {
					watching.Lock()
					defer watching.Unlock()
					most = max(most, sizeOf(blocks))
				}
				return nil
			}
			for n := range c.days {
				for hour := 0; hour < 24; hour += 4 {
					now := day.Add(time.Duration(24*n+hour) * time.Hour)
					b := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(now.UnixNano()),
						1e9)
					for k := range 500 {
						b.Sample(profiletest.Value(int64(k*k), fmt.Sprint("function", n, hour, "x", k)))
					}
					require.Equal(t, 500, s.Add(b.Build(), now.Add(time.Minute)).Samples)
					freeze(s)
					require.NoError(t, s.flush())
				}
				if size == 0 { // that of a day, as the hours have it
					size = sizeOf(blocks)
					s.disk.MaxBytes = size * int64(c.allowed)
				}
				blockfile.SetFault(watch)
				s.Maintain(day.Add(time.Duration(24*n+26) * time.Hour))
				blockfile.SetFault(nil)
			}
			assert.Equal(t, c.isJoined, len(s.Blocks()) <= c.days)
			assert.Equal(t, c.isEvicted, s.Stats().Evicted[model.EvictedBytes] > 0)
			require.NoError(t, s.Close())
			assert.LessOrEqual(t, most, s.disk.MaxBytes+size/100, "the index does not count")
		})
	}
}
