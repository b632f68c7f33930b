// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
)

// faultyDisk is a folder on a disk that fails when a test wants it, and that forgets what was not synced when the power
// fails.
type faultyDisk struct {
	dir string
	// isModelled reports that inodes are not used again, so that what is durable can be told by them.
	isModelled bool

	mu sync.Mutex
	// uses are left until the disk fails, times is how often it does then.
	uses, times int
	fault       error
	// contents and names are what is durable of files and folders, by inode.
	contents map[uint64][]byte
	names    map[uint64]map[string]uint64
	isDir    map[uint64]bool
	syncs    int
}

func newFaultyDisk(t *testing.T) *faultyDisk {
	d := &faultyDisk{isModelled: true}
	var err error
	if d.dir, err = os.MkdirTemp("/dev/shm", "operations"); err != nil {
		d.dir, d.isModelled = t.TempDir(), false
	}
	t.Cleanup(func() { _ = os.RemoveAll(d.dir) })
	d.forget()
	require.NoError(t, os.Mkdir(filepath.Join(d.dir, "store"), 0o750))
	d.synced(d.dir)
	blockfile.SetFault(d.use)
	return d
}

func (d *faultyDisk) forget() {
	d.contents, d.names, d.isDir = map[uint64][]byte{}, map[uint64]map[string]uint64{}, map[uint64]bool{}
}

// use is called before each use of the file system.
func (d *faultyDisk) use(op, path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fault != nil && d.times > 0 {
		if d.uses--; d.uses < 0 {
			d.times--
			return &fs.PathError{Op: op, Path: path, Err: d.fault}
		}
	}
	if op == "sync" && d.isModelled {
		d.synced(path)
	}
	return nil
}

func inode(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// synced notes what is durable now. With the log, which is a folder, its last file is synced.
func (d *faultyDisk) synced(path string) {
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	if !info.IsDir() {
		d.contents[inode(info)], _ = os.ReadFile(path)
		return
	}
	entries, _ := os.ReadDir(path)
	names := map[string]uint64{}
	for _, e := range entries {
		of, err := e.Info()
		if err != nil {
			continue
		}
		names[e.Name()] = inode(of)
		d.isDir[inode(of)] = e.IsDir()
		if filepath.Base(path) == "wal" && e == entries[len(entries)-1] {
			d.contents[inode(of)], _ = os.ReadFile(filepath.Join(path, e.Name()))
		}
	}
	d.names[inode(info)] = names
	if filepath.Base(path) == "wal" {
		d.syncs++
	}
}

// losePower leaves what is durable.
func (d *faultyDisk) losePower() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	info, err := os.Stat(d.dir)
	if err != nil {
		return err
	}
	entries, _ := os.ReadDir(d.dir)
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(d.dir, e.Name())); err != nil {
			return err
		}
	}
	if err := d.restore(d.dir, inode(info)); err != nil {
		return err
	}
	d.forget()
	return filepath.WalkDir(d.dir, func(path string, _ fs.DirEntry, err error) error {
		d.synced(path)
		return err
	})
}

func (d *faultyDisk) restore(dir string, of uint64) error {
	for name, inode := range d.names[of] {
		path := filepath.Join(dir, name)
		var err error
		if d.isDir[inode] {
			if err = os.Mkdir(path, 0o750); err == nil {
				err = d.restore(path, inode)
			}
		} else {
			err = os.WriteFile(path, d.contents[inode], 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// waitForSync waits until the log has been synced, and reports whether it was in time.
func (d *faultyDisk) waitForSync() bool {
	syncs := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.syncs
	}
	// Two: the first may have begun before.
	for n, begun := syncs(), time.Now(); time.Since(begun) < 5*time.Second; time.Sleep(20 * time.Millisecond) {
		if syncs() >= n+2 {
			return true
		}
	}
	return false
}

// fail lets some uses of the disk fail after a number of others.
func (d *faultyDisk) fail(uses, times int, fault error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.uses, d.times, d.fault = uses, times, fault
}

func (d *faultyDisk) heal() { d.fail(0, 0, nil) }

// isFailing reports whether the disk has failed or will fail since it was healed.
func (d *faultyDisk) isFailing() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault != nil
}
