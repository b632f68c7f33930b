// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.uber.org/zap"
)

// load reads a file whole. It gives no data and no error where the file changed meanwhile.
func (f *fileReader) load(file foundFile) ([]byte, error) {
	// One byte more than it had tells that it grew.
	data, err := readUpTo(file.path, file.info.Size()+1)
	if err != nil {
		return nil, err
	}
	after, err := os.Stat(file.path)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", file.path, err)
	}
	if int64(len(data)) != file.info.Size() || !sameState(after, file.info) {
		return nil, nil
	}
	return data, nil
}

func readUpTo(path string, limit int64) (data []byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data, err = io.ReadAll(io.LimitReader(file, limit))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", path, err)
	}
	return data, nil
}

func sameState(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// finish does with a read file what the configuration says. Where that fails it is tried again at
// the next look, and the file is not read again meanwhile.
func (f *fileReader) finish(path string, seen *seenFile) {
	var err error
	switch f.cfg.AfterRead {
	case afterReadKeep:
		return
	case afterReadDelete:
		err = os.Remove(path)
	case afterReadMove:
		err = move(path, f.moveTo)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		f.seen.gone(path)
		return
	}
	if !seen.reported {
		seen.reported = true
		f.set.Logger.Error("a file that was read stays where it is; said once", zap.Error(err))
	}
}

// move puts a file into a folder under its own name, or with a number behind it where that is taken.
func move(path, folder string) error {
	target := filepath.Join(folder, filepath.Base(path))
	for n := 1; ; n++ {
		_, err := os.Lstat(target)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return err
		}
		target = filepath.Join(folder, fmt.Sprintf("%s.%d", filepath.Base(path), n))
	}
	err := os.Rename(path, target)
	if errors.Is(err, syscall.EXDEV) {
		return moveAcross(path, target)
	}
	return err
}

// moveAcross moves between file systems, where a rename cannot. The source goes only when the copy
// is safely written, and the copy bears its name only when it is whole.
func moveAcross(path, target string) (err error) {
	source, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	partial, err := os.CreateTemp(filepath.Dir(target), ".moving-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(partial, source)
	if err = errors.Join(err, partial.Sync(), partial.Close()); err == nil {
		err = os.Rename(partial.Name(), target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(partial.Name()))
	}
	return os.Remove(path)
}
