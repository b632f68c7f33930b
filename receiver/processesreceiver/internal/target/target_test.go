// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package target

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/procfs"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestTarget(t *testing.T) {
	sleep := exec.Command("sleep", "60")
	require.NoError(t, sleep.Start())
	pid := int64(sleep.Process.Pid)
	pids, err := PIDs("/proc")
	require.NoError(t, err)
	assert.Contains(t, pids, pid)
	process, err := Open("/proc", pid)
	require.NoError(t, err)
	defer process.Close()
	assert.Positive(t, process.Start)
	path, err := process.Executable()
	require.NoError(t, err)
	assert.Equal(t, "sleep", filepath.Base(path))
	mappings, err := process.Mappings()
	require.NoError(t, err)
	first, ok := process.Program(mappings)
	require.True(t, ok)
	assert.Equal(t, path, first.Path)
	file, err := process.File()
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, info.Size(), file.Size)
	status, err := process.Status()
	require.NoError(t, err)
	assert.Equal(t, "sleep", status["Name"])
	assert.Equal(t, fmt.Sprint(pid), status["Pid"])

	require.NoError(t, sleep.Process.Kill())
	_ = sleep.Wait()
	// The directory is that of the process that has ended, whoever gets its number.
	_, err = process.Status()
	require.ErrorIs(t, err, procfs.ErrGone)
	_, err = Open("/proc", pid)
	require.ErrorIs(t, err, procfs.ErrGone)
}

func TestParseMaps(t *testing.T) {
	mappings, err := parseMaps(strings.NewReader("" +
		"00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a b (deleted)\n" +
		"7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0   [stack]\n" +
		"00e03000-00e24000 rw-p 00000000 00:00 0\n" +
		"zz-11 r--p 0 0:0 0 /bad\n5-4 r--p 0 0:0 0 /empty\n"))
	require.NoError(t, err)
	require.Equal(t,
		[]Mapping{{Start: 0x400000, Limit: 0x452000, Offset: 0x1000, IsExecutable: true, Path: "/usr/bin/a b (deleted)"}},
		mappings)
	assert.Equal(t, "a b", mappings[0].Name())
}

func FuzzMaps(f *testing.F) {
	f.Add([]byte("00400000-00452000 r-xp 00001000 08:02 173521 /usr/bin/a\n"))
	f.Fuzz(func(t *testing.T, maps []byte) {
		profiletest.RequireCost(t, profiletest.BoundOf(len(maps), 1<<20, 32), func() {
			_, _ = parseMaps(bytes.NewReader(maps))
		})
	})
}
