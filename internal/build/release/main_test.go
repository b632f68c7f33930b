// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func build(t *testing.T) string {
	dir := t.TempDir()
	for name, permissions := range map[string]os.FileMode{
		"p_1_linux_amd64/program": 0o700, "p_1_linux_amd64/config/a.yaml": 0o600, "p_1_windows_amd64/program.exe": 0o755,
		"sbom.json": 0o644, "notes.md": 0o644,
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("content of "+name), permissions))
	}
	require.NoError(t, run(dir, time.Unix(1_700_000_000, 0).UTC()))
	return dir
}

func read(t *testing.T, dir, name string) []byte {
	return profiletest.FileBytes(t, filepath.Join(dir, name))
}

func TestRelease(t *testing.T) {
	dir := build(t)
	names := []string{"p_1_linux_amd64.tar.gz", "p_1_windows_amd64.zip", "sbom.json"}
	var sums strings.Builder
	for _, name := range names {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(read(t, dir, name)), name)
	}
	assert.Equal(t, sums.String(), string(read(t, dir, "SHA256SUMS")))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 5, "the folders are gone")

	uncompressed, err := gzip.NewReader(bytes.NewReader(read(t, dir, names[0])))
	require.NoError(t, err)
	var files []string
	for archive := tar.NewReader(uncompressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		assert.Equal(t, "content of "+header.Name, string(content))
		assert.EqualValues(t, 1_700_000_000, header.ModTime.Unix())
		files = append(files, fmt.Sprintf("%s %o", header.Name, header.Mode))
	}
	assert.Equal(t, []string{"p_1_linux_amd64/config/a.yaml 644", "p_1_linux_amd64/program 755"}, files)

	windows := read(t, dir, names[1])
	archive, err := zip.NewReader(bytes.NewReader(windows), int64(len(windows)))
	require.NoError(t, err)
	require.Len(t, archive.File, 1)
	assert.Equal(t, "p_1_windows_amd64/program.exe", archive.File[0].Name)

	for _, name := range append(names, "SHA256SUMS") {
		assert.Equal(t, read(t, dir, name), read(t, build(t), name), "the same files give the same bytes")
	}
}

// The packages take files of the repository, and those that the script makes before.
func TestPackagesHaveTheirFiles(t *testing.T) {
	const root = "../../../"
	var made string
	for _, name := range []string{"Makefile", "internal/build/packages.sh"} {
		text := profiletest.FileBytes(t, root+name)
		made += string(text)
	}
	for _, name := range []string{"collector", "tool"} {
		text := profiletest.FileBytes(t, root+"config/packages/"+name+".yaml")
		sources := regexp.MustCompile(`src: "?([^",$]+)`).FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, sources)
		for _, source := range sources {
			if strings.HasPrefix(source[1], "bin/") {
				require.Contains(t, made, "> "+source[1])
			} else {
				require.FileExists(t, root+source[1])
			}
		}
	}
}
