// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/storetest"
)

func addTo(s *store.Store) func(pd pprofile.Profiles, arrived time.Time) {
	return func(pd pprofile.Profiles, arrived time.Time) { s.Add(pd, arrived) }
}

// What a store on disk answers is what one in memory does, after restarts with and without a shutdown, and after blocks
// became days.
func TestDiskAnswersAsMemory(t *testing.T) {
	cfg := store.MemoryConfig()
	cfg.Window = 100 * time.Hour
	inMemory := store.New(cfg)
	dir := t.TempDir()
	s := open(t, store.DirectoryConfig(t, dir))
	h := &storetest.History{Rand: rand.New(rand.NewPCG(1, 2))}
	begun := storetest.Noon.Add(-30 * time.Minute).Truncate(time.Hour)
	now := begun
	spans := [][2]time.Duration{{50 * time.Minute, 130 * time.Minute}, {0, 30 * time.Hour}}
	steps := 36
	if profiletest.IsRace { // everything takes minutes
		spans, steps = spans[:1], 18
	}
	check := func(what string) {
		t.Helper()
		for _, span := range spans {
			from, until := begun.Add(span[0]).UnixNano(), begun.Add(span[1]).UnixNano()
			require.Equal(t, storetest.Answers(t, inMemory, from, until), storetest.Answers(t, s, from, until), "%s, %v", what,
				span)
		}
	}
	for step := range steps {
		for range 3 {
			h.Send(now, addTo(inMemory), addTo(s))
			now = now.Add(20 * time.Minute)
		}
		switch step % 9 {
		case 2:
			s.Maintain(now)
		case 4: // as if it had been killed
			require.NoError(t, s.Kill())
			s = open(t, store.DirectoryConfig(t, dir))
		case 7:
			s.Maintain(now)
			require.NoError(t, s.Close())
			s = open(t, store.DirectoryConfig(t, dir))
		}
		if step == 5 || step == 20 {
			check(fmt.Sprint("step ", step))
		}
	}
	s.Maintain(now)
	check("in the end")
	names, err := filepath.Glob(filepath.Join(dir, "blocks", begun.Format("20060102")+"*"))
	require.NoError(t, err)
	assert.Len(t, names, 1, "a day that is over is one block")
	assert.Zero(t, s.Stats().Damaged)
	require.NoError(t, s.Close())
}

// A process that ends after a block of a day was written and before those of its hours were deleted leaves both: each
// profile counts once. What is left of a head, some of whose blocks are gone for their age, stays.
func TestReplacedBlocks(t *testing.T) {
	dir := t.TempDir()
	cfg := store.DirectoryConfig(t, dir)
	cfg.Disk.Downsampling = store.Downsampling{After: time.Hour, Step: time.Minute}
	s := open(t, cfg)
	h := &storetest.History{Rand: rand.New(rand.NewPCG(3, 3))}
	for i := range 20 {
		h.Send(storetest.Noon.Add(time.Duration(i)*10*time.Minute), addTo(s))
	}
	// A head of several hours.
	require.NoError(t, s.Close())
	cfg.Disk.Downsampling.After = 0
	s = open(t, cfg)
	s.Maintain(storetest.Noon.Add(5 * time.Hour))
	hours, profiles := len(s.Blocks()), s.Stats().Profiles
	require.Greater(t, hours, 2)
	require.NoError(t, s.Close())
	kept := t.TempDir()
	blocks := filepath.Join(dir, "blocks")
	require.NoError(t, os.CopyFS(kept, os.DirFS(blocks)))
	restore := func() {
		require.NoError(t, os.CopyFS(blocks+"2", os.DirFS(kept)))
		entries, err := os.ReadDir(blocks + "2")
		require.NoError(t, err)
		for _, e := range entries {
			if _, err := os.Stat(filepath.Join(blocks, e.Name())); err != nil {
				require.NoError(t, os.Rename(filepath.Join(blocks+"2", e.Name()), filepath.Join(blocks, e.Name())))
			}
		}
		require.NoError(t, os.RemoveAll(blocks+"2"))
	}
	s = open(t, cfg)
	s.Maintain(storetest.Noon.Add(40 * time.Hour))
	require.Len(t, s.Blocks(), 1)
	require.NoError(t, s.Close())
	restore()
	s = open(t, cfg)
	require.Len(t, s.Blocks(), 1, "those of the hours are deleted")
	require.Equal(t, profiles, s.Stats().Profiles)
	require.NoError(t, s.Close())
	require.NoError(t, os.CopyFS(kept, os.DirFS(blocks)))
	cfg.Disk.Downsampling.After = time.Hour
	s = open(t, cfg)
	s.Maintain(storetest.Noon.Add(39 * time.Hour))
	s.Maintain(storetest.Noon.Add(40 * time.Hour)) // the clock is believed after an hour
	require.Len(t, s.Blocks(), 1)
	require.NotZero(t, s.Blocks()[0].Step)
	coarse := s.Stats().Profiles
	require.NoError(t, s.Close())
	restore()
	s = open(t, cfg)
	require.Len(t, s.Blocks(), 1)
	require.NotZero(t, s.Blocks()[0].Step)
	require.Equal(t, coarse, s.Stats().Profiles)
	require.NoError(t, s.Close())
}
