// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// processDir writes the files of process 7 below a new root.
func processDir(t *testing.T, files map[string]string) (root, dir string) {
	root = t.TempDir()
	dir = filepath.Join(root, "7")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return root, dir
}

const stat = "7 (a) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0"

func TestRead(t *testing.T) {
	root, dir := processDir(t, map[string]string{
		"stat": stat, "cmdline": "a\x00b\x00", "cgroup": "0::/system.slice/a.service\n",
		"environ": "OTEL_SERVICE_NAME=shop\x00",
	})
	require.NoError(t, os.Symlink("/usr/bin/a (deleted)", filepath.Join(dir, "exe")))
	want := Process{Executable: "/usr/bin/a", Name: "a", Arguments: []string{"a", "b"}, Unit: "a"}
	r := Reader{Root: root, MaxFileBytes: 4096}
	got, err := r.Read(7)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	r.ReadEnvironment = true
	want.ServiceName = "shop"
	got, err = r.Read(7)
	require.NoError(t, err)
	assert.Equal(t, want, got)

	for _, file := range []string{"exe", "cmdline", "cgroup", "environ"} { // as without the right to read them
		require.NoError(t, os.Remove(filepath.Join(dir, file)))
	}
	got, err = r.Read(7)
	require.NoError(t, err)
	assert.Equal(t, Process{Name: "a"}, got)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "stat"), []byte("x"), 0o600))
	_, err = r.Read(7)
	require.ErrorContains(t, err, "read process 7: stat")
	require.NoError(t, os.Remove(filepath.Join(dir, "stat")))
	for _, pid := range []int64{7, 8, 0, -1} {
		_, err = r.Read(pid)
		require.ErrorIs(t, err, ErrGone)
	}
}

// A thread of the kernel has nothing else to read.
func TestReadKernelThread(t *testing.T) {
	root, _ := processDir(t, map[string]string{"stat": strings.Replace(stat, "-1 0", "-1 2129984", 1), "cmdline": "a\x00"})
	got, err := (&Reader{Root: root, MaxFileBytes: 4096}).Read(7)
	require.NoError(t, err)
	assert.Equal(t, Process{IsKernelThread: true}, got)
}

// Of what is larger than it may be, the part that is whole counts.
func TestReadIsBounded(t *testing.T) {
	const limit = 64 << 10
	root, _ := processDir(t, map[string]string{
		"stat":    stat,
		"cmdline": "a\x00" + strings.Repeat("b", limit),
		"cgroup":  "0::/system.slice/a.service\n" + strings.Repeat("x", limit),
		"environ": "A=" + strings.Repeat("b", limit-40) + "\x00OTEL_SERVICE_NAME=" + strings.Repeat("c", 100) + "\x00" +
			strings.Repeat("d", 64<<20),
	})
	r := Reader{Root: root, MaxFileBytes: limit, ReadEnvironment: true}
	var got Process
	var err error
	profiletest.RequireCost(t, profiletest.BoundOf(limit, 4<<20, 64), func() { got, err = r.Read(7) })
	require.NoError(t, err)
	assert.Equal(t, Process{Name: "a", Arguments: []string{"a"}, Unit: "a"}, got)
}

// A name below the process's folder leads to nothing outside of it.
func TestReadFollowsNoLinks(t *testing.T) {
	root, dir := processDir(t, map[string]string{"stat": stat})
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret\x00"), 0o600))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "cmdline")))
	got, err := (&Reader{Root: root, MaxFileBytes: 4096}).Read(7)
	require.NoError(t, err)
	assert.Nil(t, got.Arguments)
}
