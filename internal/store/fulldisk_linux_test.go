// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

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
