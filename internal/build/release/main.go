// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command release packs what `make release` has built. Each folder below a folder becomes an archive beside it: a zip
// for Windows, a compressed tar otherwise. SHA256SUMS lists all files but the notes. The same files result in the same
// bytes.
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	dir := flag.String("dir", "bin/release", "folder with a folder for each platform")
	seconds := flag.Int64("time", 0, "time of all files, in seconds since 1970")
	flag.Parse()
	if err := run(*dir, time.Unix(*seconds, 0).UTC()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(dir string, at time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		folder := filepath.Join(dir, entry.Name())
		if err := pack(folder, at); err != nil {
			return fmt.Errorf("pack %s: %w", folder, err)
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	return writeSums(dir)
}

// archive is an archive to which files are added.
type archive interface {
	add(name string, info fs.FileInfo, at time.Time) (io.Writer, error)
	Close() error
}

type tarball struct {
	*tar.Writer
	compressed *gzip.Writer
}

func (t tarball) add(name string, info fs.FileInfo, at time.Time) (io.Writer, error) {
	return t, t.WriteHeader(&tar.Header{Name: name, Size: info.Size(), Mode: mode(info), ModTime: at,
		Format: tar.FormatUSTAR})
}

func (t tarball) Close() error { return errors.Join(t.Writer.Close(), t.compressed.Close()) }

type zipFile struct{ *zip.Writer }

func (z zipFile) add(name string, info fs.FileInfo, at time.Time) (io.Writer, error) {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at}
	header.SetMode(fs.FileMode(mode(info)))
	return z.CreateHeader(header)
}

// mode returns one of two permissions, regardless of the umask.
func mode(info fs.FileInfo) int64 {
	if info.Mode()&0o100 != 0 {
		return 0o755
	}
	return 0o644
}

// pack archives a folder, whose name begins the path of each file. The files are in the order of their names.
func pack(folder string, at time.Time) (err error) {
	isWindows := strings.Contains(filepath.Base(folder), "_windows_")
	name := folder + ".tar.gz"
	if isWindows {
		name = folder + ".zip"
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var to archive
	if isWindows {
		to = zipFile{zip.NewWriter(file)}
	} else {
		compressed := gzip.NewWriter(file)
		to = tarball{tar.NewWriter(compressed), compressed}
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		inArchive, err := filepath.Rel(filepath.Dir(folder), path)
		if err != nil {
			return err
		}
		w, err := to.add(filepath.ToSlash(inArchive), info, at)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	})
}

// writeSums writes SHA256SUMS, which `sha256sum --check` reads.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, entry := range entries {
		if entry.Name() == "SHA256SUMS" || entry.Name() == "notes.md" { // the notes are the text of the release's page
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
