// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package blockfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/prometheus/tsdb/fileutil"
)

// This file is how blocks, and the directory that has them, use the file system.

// ErrUnreadable is wrapped by errors for files that cannot be read at the moment: no descriptor is free, a permission
// is missing, the disk fails. The files may be intact.
var ErrUnreadable = errors.New("the store's files cannot be read at the moment")

// ErrVersion is wrapped by errors for a block that another version of this program wrote.
var ErrVersion = errors.New("the block has another layout version")

// unusable returns the error for a file that cannot be used. It is damaged if it is missing, or if its bytes are wrong:
// not if the operating system does not let us read it.
func unusable(name string, err error) error {
	var number syscall.Errno
	if errors.As(err, &number) && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s: %w", ErrUnreadable, name, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
}

var fault atomic.Pointer[func(op, path string) error]

// SetFault has f called before each use of the file system, and its error returned in place of the result. It is for
// tests; nil ends it.
func SetFault(f func(op, path string) error) {
	if f == nil {
		fault.Store(nil)
		return
	}
	fault.Store(&f)
}

// Fault returns the error that a test wants of an operation.
func Fault(op, path string) error {
	if f := fault.Load(); f != nil {
		return (*f)(op, path)
	}
	return nil
}

// Rename renames a file or directory, and makes the new name durable.
func Rename(from, to string) error {
	if err := Fault("rename", to); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// RemoveAll deletes what is below a path.
func RemoveAll(path string) error {
	if err := Fault("remove", path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// maxSealedBytes bounds an index or a manifest.
const maxSealedBytes = 256 << 20

// ReadSealed reads a file that has a sealed object.
func ReadSealed(path string, object any) error {
	name := filepath.Base(path)
	if err := Fault("open", path); err != nil {
		return unusable(name, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return unusable(name, err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxSealedBytes))
	if err != nil {
		return unusable(name, err)
	}
	if err := Unseal(b, object); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return nil
}

// WriteSealed writes a file that has a sealed object, in place of the one that is there. It is durable then.
func WriteSealed(path string, object any) error {
	b, err := Seal(object)
	if err != nil {
		return err
	}
	next := path + ".tmp"
	if err := Fault("create", next); err != nil {
		return err
	}
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	_, err = faulty{f, f.Name()}.Write(b)
	if err == nil {
		err = faulty{f, f.Name()}.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return Rename(next, path)
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	if err := Fault("sync", dir); err != nil {
		return err
	}
	f, err := fileutil.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// ReadDir lists a directory.
func ReadDir(dir string) ([]os.DirEntry, error) {
	if err := Fault("read", dir); err != nil {
		return nil, err
	}
	return os.ReadDir(dir)
}

// maxOpenFiles is how many files of all blocks stay open for the next query.
const maxOpenFiles = 64

// openFiles are those that were read last. A file that leaves them is closed; a read that goes on ends first.
var openFiles, _ = lru.NewWithEvict(maxOpenFiles, func(_ *dataFile, f *os.File) { _ = f.Close() })

// dataFile is a file of a block, which is opened when it is read.
type dataFile struct{ path string }

// ReadAt is io.ReaderAt's.
func (d *dataFile) ReadAt(b []byte, offset int64) (n int, err error) {
	if err := Fault("read", d.path); err != nil {
		return 0, err
	}
	for {
		f, isOpen := openFiles.Get(d)
		if !isOpen {
			if err := Fault("open", d.path); err != nil {
				return 0, err
			}
			if f, err = os.Open(d.path); err != nil {
				return 0, err
			}
			if other, isOpen, _ := openFiles.PeekOrAdd(d, f); isOpen {
				_ = f.Close()
				f = other
			}
		}
		if n, err = f.ReadAt(b, offset); !errors.Is(err, os.ErrClosed) { // it has left openFiles meanwhile
			return n, err
		}
	}
}

// Close closes the file. It may be read again.
func (d *dataFile) Close() { openFiles.Remove(d) }
