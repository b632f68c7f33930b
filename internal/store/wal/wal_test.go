// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package wal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// written returns a log with a file of some records, where these end, and its bytes.
func written(t *testing.T) (l *Log, ends []int, file []byte) {
	t.Helper()
	l = &Log{Dir: t.TempDir()}
	require.NoError(t, l.Begin(1))
	ends = []int{0}
	for i := range 4 {
		record := append(make([]byte, HeaderBytes), fmt.Sprint("record ", i, bytes.Repeat([]byte{0}, i))...)
		require.NoError(t, l.Append(record))
		ends = append(ends, ends[i]+len(record))
	}
	require.NoError(t, l.Close())
	file = profiletest.FileBytes(t, l.Path(1))
	require.Len(t, file, ends[4])
	return l, ends, file
}

// read returns how many records a file has, and why not more.
func read(t *testing.T, l *Log, file []byte) (n int, fault *Fault) {
	t.Helper()
	require.NoError(t, os.WriteFile(l.Path(1), file, 0o600))
	fault, err := l.Read(1, func(record []byte) error {
		require.Contains(t, string(record), fmt.Sprint("record ", n))
		n++
		return nil
	})
	require.NoError(t, err)
	return n, fault
}

// A file that ends within a record, or in zeros, is cut after the last whole record, and is whole then.
func TestTornEnds(t *testing.T) {
	l, ends, file := written(t)
	whole := 0
	for size := range len(file) {
		for size >= ends[whole+1] {
			whole++
		}
		for _, zeros := range []int{0, 1, 5000} {
			if whole == 0 && zeros > 0 || zeros == 0 && size == ends[whole] || zeros > 0 && size != ends[whole] {
				continue // damage, no fault, damage
			}
			n, fault := read(t, l, append(bytes.Clone(file[:size]), make([]byte, zeros)...))
			require.Equal(t, whole, n)
			require.Equal(t, &Fault{Path: l.Path(1), At: ends[whole], Err: ErrTorn}, fault, "%d bytes", size)
			cut := profiletest.FileBytes(t, l.Path(1))
			require.Equal(t, string(file[:ends[whole]]), string(cut))
		}
	}
	n, fault := read(t, l, nil)
	require.Zero(t, n)
	require.Nil(t, fault, "a process can end before it writes the first record")
}

// Wrong bytes cost what follows them. They are not taken for a torn end, and stay for whoever can read more of them:
// also the length of a record that is wrong, and a file that is nothing but zeros.
func TestWrongBytes(t *testing.T) {
	l, ends, file := written(t)
	whole := 0
	for i := range file {
		if i == ends[whole+1] {
			whole++
		}
		for _, bit := range []byte{1, 0x80} {
			wrong := bytes.Clone(file)
			wrong[i] ^= bit
			n, fault := read(t, l, wrong)
			require.Equal(t, whole, n)
			require.NotNil(t, fault)
			require.Equal(t, ends[whole], fault.At)
			require.NotErrorIs(t, fault.Err, ErrTorn, "byte %d", i)
			left := profiletest.FileBytes(t, l.Path(1))
			require.Equal(t, wrong, left)
		}
	}
	for _, size := range []int{HeaderBytes, 4096, 32 << 10, 100_000} {
		n, fault := read(t, l, make([]byte, size))
		require.Zero(t, n)
		require.NotNil(t, fault)
		require.NotErrorIs(t, fault.Err, ErrTorn, "%d zeros", size)
	}
}

// Cut deletes the files before a number. Begin does not write to one that is there, and fails if the one before, or the
// name of the folder, cannot be made durable. Continue goes on with what a file has.
func TestFiles(t *testing.T) {
	l := &Log{Dir: filepath.Join(t.TempDir(), "wal")}
	failSync := func(of string) {
		blockfile.SetFault(func(op, path string) error {
			if op == "sync" && path == of {
				return syscall.EIO
			}
			return nil
		})
		t.Cleanup(func() { blockfile.SetFault(nil) })
	}
	failSync(filepath.Dir(l.Dir))
	require.ErrorIs(t, l.Begin(1), syscall.EIO)
	blockfile.SetFault(nil)
	for _, n := range []uint64{2, 10, 0x1_0000_0000} {
		require.NoError(t, l.Begin(n))
	}
	require.Error(t, l.Begin(10))
	require.NoError(t, l.Begin(11))
	failSync(l.Path(11))
	require.ErrorIs(t, l.Begin(12), syscall.EIO)
	blockfile.SetFault(nil)
	for _, record := range []string{"first", "second"} {
		require.NoError(t, l.Continue(11))
		require.NoError(t, l.Append(append(make([]byte, HeaderBytes), record...)))
	}
	var records []string
	fault, err := l.Read(11, func(record []byte) error { records = append(records, string(record)); return nil })
	require.NoError(t, err)
	require.Nil(t, fault)
	require.Equal(t, []string{"first", "second"}, records)
	require.NoError(t, l.Close())
	require.NoError(t, os.WriteFile(l.Path(0)+".other", nil, 0o600))
	require.NoError(t, l.Cut(10))
	files, err := l.Files()
	require.NoError(t, err)
	require.Equal(t, []uint64{10, 11, 0x1_0000_0000}, files)
}

// Sync and Close fail if the file itself cannot be made durable, as a pipe cannot.
func TestFileIsDurable(t *testing.T) {
	_, file, err := os.Pipe()
	require.NoError(t, err)
	l := &Log{Dir: t.TempDir()}
	l.file.Store(file)
	require.ErrorIs(t, l.Sync(), syscall.EINVAL)
	require.ErrorIs(t, l.Close(), syscall.EINVAL)
}
