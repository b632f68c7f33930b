// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func mountSmall(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("cannot mount a tmpfs:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

func fillUp(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	require.NoError(t, err)
	for size := 64 << 10; size > 0; size /= 2 {
		for {
			if _, err := f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
	require.NoError(t, f.Close())
}

// What was acknowledged and logged while the disk worked survives a kill, whatever the store tries while the disk is
// full.
func TestFullDiskKeepsItsLog(t *testing.T) {
	for _, tries := range []bool{false, true} {
		t.Run(fmt.Sprintf("the store tries again: %t", tries), func(t *testing.T) {
			disk := mountSmall(t, "1m")
			dir := filepath.Join(disk, "store")
			s := open(t, diskConfig(t, dir))
			for i := range 20 {
				add(t, s, "late in the order", "cpu", "nanoseconds", i, 1, profiletest.Value(1, "leaf"))
				add(t, s, "first", "cpu", "nanoseconds", i, 1, profiletest.Value(1, "leaf"))
			}
			require.Nil(t, s.disk.failed) // 40 profiles are acknowledged and in the log
			fillUp(t, filepath.Join(disk, "ballast"))
			for i := 20; s.disk.failed == nil || i < 4000; i++ { // refused from some time on
				add(t, s, "first", "cpu", "nanoseconds", i%3000, 1, profiletest.Value(1, fmt.Sprint("another leaf", i)))
			}
			if tries {
				s.Maintain(noon.Add(59 * time.Minute)) // each ten seconds
				require.NotNil(t, s.disk.failed)
			}
			require.NoError(t, s.Kill())
			require.NoError(t, os.Remove(filepath.Join(disk, "ballast"))) // the operator makes room
			s = open(t, diskConfig(t, dir))
			got := sum(t, s,
				model.Selection{Service: "shop", Profile: "process_cpu",
					Attributes: []model.Attribute{{Key: "service.instance.id", Value: "late in the order"}}})
			assert.EqualValues(t, 20, got, "of 20 profiles that were acknowledged while the disk worked")
			require.NoError(t, s.Close())
		})
	}
}

// A process that is killed while the disk is full, and started while it still is, loses nothing of what it had
// acknowledged and logged.
func TestRestartOnFullDisk(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprint("started while it is full: ", restarts), func(t *testing.T) {
			disk := mountSmall(t, "2m")
			dir := filepath.Join(disk, "store")
			s := open(t, diskConfig(t, dir))
			logged := 0
			push := func(i int) {
				add(t, s, "a", "cpu", "nanoseconds", i%3000, 1,
					profiletest.Value(1, fmt.Sprint("a leaf of this push alone, with a long name ", i)))
			}
			for ; logged < 3000; logged++ {
				push(logged)
			}
			require.Nil(t, s.disk.failed)
			fillUp(t, filepath.Join(disk, "ballast"))
			for i := logged; s.disk.failed == nil; i++ {
				push(i)
			}
			require.NoError(t, s.Kill())
			if restarts {
				again := New(diskConfig(t, dir))
				err := again.Open()
				t.Log("started while the disk is full:", err)
				if err == nil {
					require.NoError(t, again.Kill())
				}
			}
			entries, _ := os.ReadDir(filepath.Join(dir, "wal"))
			for _, e := range entries {
				info, _ := e.Info()
				t.Log(e.Name(), info.Size())
			}
			require.NoError(t, os.Remove(filepath.Join(disk, "ballast")))
			s = open(t, diskConfig(t, dir))
			got := int64(0)
			if g, err := s.FlameGraph(t.Context(), model.Selection{Service: "shop", Profile: "process_cpu"},
				100_000); err == nil {
				got = g.Total[0]
			}
			assert.GreaterOrEqual(t, got, int64(logged), "of what was logged")
			require.NoError(t, s.Close())
		})
	}
}

// When a full disk has room again, the log is written again, with all that memory has: a kill loses nothing.
func TestLogGoesOn(t *testing.T) {
	disk := mountSmall(t, "2m")
	dir := filepath.Join(disk, "store")
	s := open(t, diskConfig(t, dir))
	kept := 0
	push := func(i int) { kept += add(t, s, "a", "cpu", "nanoseconds", i, 1, profiletest.Value(1, "leaf")).Profiles }
	for i := range 20 {
		push(i)
	}
	fillUp(t, filepath.Join(disk, "ballast"))
	i := 20
	for ; s.disk.failed == nil; i++ {
		push(i % 3000)
	}
	push(i % 3000)
	require.Less(t, kept, i)
	require.NoError(t, os.Remove(filepath.Join(disk, "ballast")))
	s.Maintain(noon.Add(59 * time.Minute))
	require.Nil(t, s.disk.failed)
	require.NoError(t, s.Kill())
	s = open(t, diskConfig(t, dir))
	assert.EqualValues(t, kept, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
	require.NoError(t, s.Close())
}

// A moment without free file descriptors costs a query, not the blocks: their files are as they were written.
func TestBlocksWithoutDescriptors(t *testing.T) {
	for _, isShort := range []bool{false, true} {
		t.Run(fmt.Sprintf("out of descriptors: %t", isShort), func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, diskConfig(t, dir))
			now := noon
			for range 3 {
				add(t, s, "a", "cpu", "nanoseconds", int(now.Sub(noon)/time.Second), 10, profiletest.Value(1, "leaf"))
				now = now.Add(time.Hour)
			}
			s.Maintain(now)
			require.Equal(t, 3, s.Stats().DiskBlocks)
			if isShort {
				entries, err := os.ReadDir("/proc/self/fd")
				require.NoError(t, err)
				var before syscall.Rlimit
				require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
				low := before
				low.Cur = uint64(len(entries)) - 1 // none is free
				require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
				_, err = s.FlameGraph(t.Context(), model.Selection{Service: "shop", Profile: "process_cpu"}, 100)
				t.Log("the query's error:", err)
				require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before))
			}
			got := int64(0)
			if g, err := s.FlameGraph(t.Context(), model.Selection{Service: "shop", Profile: "process_cpu"}, 100); err == nil {
				got = g.Total[0]
			}
			assert.EqualValues(t, 3, got, "afterwards, with free descriptors")
			require.NoError(t, s.Close())
			aside, err := os.ReadDir(filepath.Join(dir, "damaged"))
			require.NoError(t, err)
			assert.Empty(t, aside, "blocks that were set aside")
			s = open(t, diskConfig(t, dir))
			assert.Equal(t, 3, s.Stats().Profiles, "after a restart")
			require.NoError(t, s.Close())
		})
	}
}
