// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// A folder that cannot be listed is reported once, and hides no other.
func TestFolderWithoutPermission(t *testing.T) {
	d := newFolder(t, "", nil)
	require.NoError(t, os.Chmod(filepath.Dir(d.path), 0o755))
	d.put("secret/x.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour)
	other := d.put("x.pb.gz", sourcetest.Captured(t, "go-mutex.pb.gz"), time.Hour)
	require.NoError(t, os.Chmod(other, 0o644))
	secret := filepath.Join(d.path, "secret")
	require.NoError(t, os.Chmod(secret, 0))
	asNobody(t)
	assert.Equal(t, []string{other}, d.scan())
	assert.Empty(t, d.scan())
	lines := d.Logs.FilterMessageSnippet("cannot list all files and folders of `include`").All()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0].ContextMap()["error"], "secret: permission denied")
	assert.EqualValues(t, 2, d.Sum("otelcol_receiver_pprof_file_incomplete_scans"))
}

// Names may have any bytes, those of folders too. Attributes have UTF-8.
func TestFolderOfAnyName(t *testing.T) {
	d := newFolder(t, "", nil)
	var want []string
	for i, name := range []string{"caf\xe9", "line\nbreak", "[a]{b}*", "-"} {
		path := d.put(name+"/"+name+".pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Duration(9-i)*time.Hour)
		want = append(want, strings.ReplaceAll(path, "\xe9", "\uFFFD"))
	}
	assert.Equal(t, want, d.scan())
	assert.Zero(t, d.Sum("otelcol_receiver_pprof_file_incomplete_scans"))
}

// asNobody takes the rights to files from the test's thread, if it runs as root.
func asNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	runtime.LockOSThread()
	require.NoError(t, unix.Setfsuid(nobody))
	t.Cleanup(func() {
		require.NoError(t, unix.Setfsuid(0))
		runtime.UnlockOSThread()
	})
}
