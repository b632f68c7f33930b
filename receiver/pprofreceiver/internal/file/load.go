// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
)

// load reads a file into memory that reservation holds. It returns no data and no error if the file changed meanwhile.
func load(ctx context.Context, file foundFile, reservation *budget.Reservation) (data []byte, err error) {
	// Without O_NONBLOCK, a pipe that has replaced the file meanwhile would hold up the reader until somebody writes.
	opened, err := os.OpenFile(file.path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	if !file.isUnchanged() {
		return nil, nil
	}
	data, err = reservation.ReadAll(ctx, opened, file.info.Size(), file.info.Size())
	var grown *budget.TooLargeError
	switch {
	case errors.As(err, &grown) && !file.isUnchanged():
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %q: %w", file.path, err)
	case int64(len(data)) != file.info.Size() || !file.isUnchanged():
		return nil, nil
	}
	return data, nil
}

// isUnchanged reports whether the path still leads to the file that was found, with the same size and time.
func (f *foundFile) isUnchanged() bool {
	now, err := os.Stat(f.path)
	return err == nil && now.Size() == f.info.Size() && now.ModTime().Equal(f.info.ModTime()) && os.SameFile(now, f.info)
}

// finish keeps, deletes or moves a file that was read, as configured. If that fails, the next scan retries it, without
// reading the file again.
func (f *Reader) finish(file foundFile, seen *seenFile) {
	path := file.path
	if f.cfg.AfterRead == AfterReadKeep || !file.isUnchanged() {
		return // it was written to since, and must be read first
	}
	var err error
	switch f.cfg.AfterRead {
	case AfterReadDelete:
		err = os.Remove(path)
	case AfterReadMove:
		if err = os.MkdirAll(f.moveTo, 0o750); err == nil { // somebody may have removed it
			err = move(path, f.moveTo)
		}
	}
	if _, missing := os.Lstat(path); err == nil || errors.Is(missing, fs.ErrNotExist) {
		f.seen.gone(path)
		return
	}
	if !seen.reported {
		seen.reported = true
		f.set.Logger.Error("cannot delete or move a file that was read; suppressing repeats", zap.Error(err))
	}
}

// move puts a file into a folder under its own name, or with the time in nanoseconds appended if that name exists.
func move(path, folder string) error {
	name := filepath.Join(folder, filepath.Base(path))
	err := renameTo(path, name)
	if errors.Is(err, syscall.EXDEV) {
		return moveAcross(path, name)
	}
	return err
}

// renameTo renames a file to name, or to a longer name if another file has that one.
func renameTo(path, name string) error {
	target, err := reserve(name)
	if err != nil {
		return err
	}
	if err := os.Rename(path, target); err != nil {
		return errors.Join(err, os.Remove(target))
	}
	return nil
}

// reserve creates an empty file for a file to be moved to: others may move files to the same folder.
func reserve(path string) (string, error) {
	for name := path; ; name = fmt.Sprintf("%s.%d", path, time.Now().UnixNano()) {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return name, file.Close()
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
}

// moveAcross moves a file to another file system, where rename does not work. It removes the source only when the copy
// is on disk, and gives the copy its name only when it is complete.
func moveAcross(path, name string) error {
	source, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	partial, err := os.CreateTemp(filepath.Dir(name), ".moving-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(partial, source)
	if err = errors.Join(err, partial.Sync(), partial.Close()); err == nil {
		err = renameTo(partial.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(partial.Name()))
	}
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) { // somebody may have removed it meanwhile
		return err
	}
	return nil
}
