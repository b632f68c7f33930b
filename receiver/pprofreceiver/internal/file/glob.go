// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
)

// glob returns the paths that match a pattern. It visits at most maxEntries files and folders. err is that of the first
// folder that could not be listed, or not whole; paths are those of the others. It does not list the folder skip. `**`
// does not follow symbolic links, which could form a loop.
func glob(pattern string, maxEntries int, skip string) (paths []string, err error) {
	base, rest := doublestar.SplitPattern(filepath.ToSlash(filepath.Clean(pattern)))
	bounded := &boundedFS{base: filepath.FromSlash(base), skip: skip, left: maxEntries,
		listed: map[string]int{}}
	paths, err = doublestar.Glob(bounded, rest, doublestar.WithNoFollow()) // ignores errors of folders
	err = cmp.Or(err, bounded.err)
	for i, path := range paths {
		paths[i] = filepath.Join(bounded.base, filepath.FromSlash(path))
	}
	return paths, err
}

var errTooMany = errors.New("there are more than `max_entries` files and folders")

// boundedFS is a file system that lists a number of entries: a folder may have more than fit into memory.
// Unlike os.DirFS, it has names that are not UTF-8.
type boundedFS struct {
	base, skip string
	left       int
	err        error
	// listed has the folders with the number of their entries that were listed: the matcher reads a folder several times.
	listed map[string]int
}

func (b *boundedFS) path(name string) string { return filepath.Join(b.base, filepath.FromSlash(name)) }

// Open opens a file below the base.
func (b *boundedFS) Open(name string) (fs.File, error) {
	file, err := os.Open(b.path(name))
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Stat does not open files, unlike fs.Stat without it: opening a pipe waits for its writer.
func (b *boundedFS) Stat(name string) (fs.FileInfo, error) { return os.Stat(b.path(name)) }

// ReadDir lists the entries of a folder for which there is room. It keeps the first error of a folder that exists.
func (b *boundedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := b.readDir(name)
	if b.err == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		b.err = err
	}
	return entries, err
}

func (b *boundedFS) readDir(name string) (entries []fs.DirEntry, err error) {
	if b.skip != "" && b.path(name) == b.skip {
		return nil, nil
	}
	folder, err := b.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	lister, ok := folder.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	room, again := b.listed[name]
	if !again {
		room = b.left
	}
	for len(entries) <= room {
		some, err := lister.ReadDir(min(room+1-len(entries), 1024))
		entries = append(entries, some...)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return nil, err
			}
			break
		}
	}
	if len(entries) > room {
		entries = entries[:room]
		b.err = cmp.Or(b.err, errTooMany)
	}
	if !again {
		b.listed[name] = len(entries)
		b.left -= len(entries)
	}
	return entries, nil
}
