// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file that changes between being found and being read is left for the next look.
func TestFileChangedMeanwhile(t *testing.T) {
	whole := captured(t, "go-heap.pb.gz")
	for name, before := range map[string][]byte{"it grew": whole[:500], "it was overwritten": make([]byte, len(whole))} {
		t.Run(name, func(t *testing.T) {
			d := newFolder(t, "", nil)
			path := d.put("x.pb.gz", before, time.Hour)
			found := d.reader.find()
			require.Len(t, found, 1)
			d.put("x.pb.gz", whole, 0)
			assert.True(t, d.reader.visit(t.Context(), found[0]))
			assert.Empty(t, d.next.all())
			assert.Zero(t, d.sum(metricRejected))
			assert.Equal(t, []string{path}, d.look())
		})
	}
}

func TestFileIsMoved(t *testing.T) {
	d := &folder{path: t.TempDir(), clock: time.Now()}
	// The folder that files are moved to matches the glob: what is there is not read again.
	target := filepath.Join(d.path, "done")
	more := fmt.Sprintf(", after_read: move, move_to: '%s'", target)
	d.fixture = newFixture(t, d.config(more)).start(nil)
	d.attach(d.receiver)
	d.put("a/x.pb.gz", captured(t, "go-heap.pb.gz"), 2*time.Hour)
	d.put("b/x.pb.gz", captured(t, "go-mutex.pb.gz"), time.Hour)
	assert.Len(t, d.look(), 2)
	assert.Empty(t, d.look())
	for name, want := range map[string]string{"x.pb.gz": "go-heap.pb.gz", "x.pb.gz.1": "go-mutex.pb.gz"} {
		got, err := os.ReadFile(filepath.Join(target, name))
		require.NoError(t, err)
		assert.Equal(t, captured(t, want), got)
	}
	assert.Empty(t, d.reader.seen.files, "what is gone by our hand is forgotten at once")
}

// Where the file cannot be removed it is not read again, and that is said once.
func TestFileThatStays(t *testing.T) {
	d := newFolder(t, ", after_read: move, move_to: '"+filepath.Join(t.TempDir(), "done")+"'", nil)
	require.NoError(t, os.RemoveAll(d.reader.moveTo))
	require.NoError(t, os.WriteFile(d.reader.moveTo, nil, 0o600), "a file where the folder was")
	path := d.put("x.pb.gz", captured(t, "go-heap.pb.gz"), time.Hour)
	assert.Equal(t, []string{path}, d.look())
	assert.Empty(t, d.look())
	assert.FileExists(t, path)
	assert.Equal(t, 1, d.logs.FilterMessageSnippet("stays where it is").Len())

	require.NoError(t, os.Remove(d.reader.moveTo))
	require.NoError(t, os.Mkdir(d.reader.moveTo, 0o700))
	assert.Empty(t, d.look())
	assert.NoFileExists(t, path)
}

func TestMoveAcross(t *testing.T) {
	folder := t.TempDir()
	source, target := filepath.Join(folder, "a"), filepath.Join(folder, "b")
	require.NoError(t, os.WriteFile(source, []byte("x"), 0o600))
	require.NoError(t, moveAcross(source, target))
	assert.NoFileExists(t, source)
	got, err := os.ReadFile(target)
	require.NoError(t, err)
	assert.Equal(t, "x", string(got))

	require.Error(t, moveAcross(source, target), "the source is gone")
	require.NoError(t, os.WriteFile(source, []byte("x"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "c", "d"), 0o700))
	require.Error(t, moveAcross(source, filepath.Join(folder, "c")), "a folder is in the way")
	assert.FileExists(t, source)
	left, err := filepath.Glob(filepath.Join(folder, ".moving-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
