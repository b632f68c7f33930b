// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Both ways to open a file below a root find the same files, and none outside.
func TestOpenStaysBelowItsRoot(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "usr", "lib"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "usr", "lib", "file"), []byte("inside"), 0o600))
	require.NoError(t, os.Symlink("usr/lib", filepath.Join(root, "lib")))
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "absolute")))
	require.NoError(t, os.Symlink("../../../../../../../../"+outside, filepath.Join(root, "relative")))
	for name, open := range map[string]func(root, name string) (*os.File,
		error){"openFile": openFile, "openInRoot": openInRoot} {
		t.Run(name, func(t *testing.T) {
			for _, inside := range []string{"/usr/lib/file", "usr/lib/file", "/lib/file", "/lib/../lib/file",
				"/../../usr/lib/file"} {
				file, err := open(root, inside)
				if !assert.NoError(t, err, inside) {
					continue
				}
				b, err := io.ReadAll(file)
				require.NoError(t, err)
				require.NoError(t, file.Close())
				assert.Equal(t, "inside", string(b))
			}
			for _, no := range []string{
				"/absolute/secret", "/relative/secret", "../" + filepath.Base(outside) + "/secret", "/usr", "/", "", "/nothing",
				"/usr/lib/file/more", "/usr/lib/file\x00",
			} {
				file, err := open(root, no)
				if !assert.Error(t, err, no) {
					_ = file.Close()
				}
			}
		})
	}
	_, err := openFile(filepath.Join(root, "nowhere"), "file")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// Reading files of /proc can block or have effects, so a name from a profile never opens one.
func TestPseudoFilesAreRefused(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc")
	}
	for _, name := range []string{"/proc/self/status", "/proc/self/maps", "/proc/self/exe", "/proc/self/root/etc/passwd",
		"/sys/kernel/notes", "/dev/null"} {
		file, err := openFile("/", name)
		if !assert.Error(t, err, name) {
			_ = file.Close()
		}
	}
}
