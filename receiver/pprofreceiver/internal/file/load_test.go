// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// A file that changes between being found and being read is left for the next scan.
func TestFileChangedMeanwhile(t *testing.T) {
	whole := sourcetest.Captured(t, "go-heap.pb.gz")
	for name, before := range map[string][]byte{"it grew": whole[:500], "it was overwritten": make([]byte, len(whole))} {
		t.Run(name, func(t *testing.T) {
			d := newFolder(t, "", nil)
			path := d.put("x.pb.gz", before, time.Hour)
			found := d.reader.find(t.Context())
			require.Len(t, found, 1)
			d.put("x.pb.gz", whole, 0)
			assert.True(t, d.reader.visit(t.Context(), found[0]))
			assert.Empty(t, d.Next.All())
			assert.Zero(t, d.Sum(sourcetest.MetricRejected))
			assert.Equal(t, []string{path}, d.scan())
		})
	}
}

// A pipe that replaces a file between being found and being read does not hold up the reader.
func TestFileReplacedByPipe(t *testing.T) {
	d := newFolder(t, "", nil)
	path := d.put("x.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour)
	found := d.reader.find(t.Context())
	require.NoError(t, os.Remove(path))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	visited := make(chan bool, 1)
	go func() { visited <- d.reader.visit(t.Context(), found[0]) }()
	select {
	case goesOn := <-visited:
		assert.True(t, goesOn)
	case <-time.After(sourcetest.Patience):
		t.Error("the reader waits for a writer of the pipe")
		writer, err := os.OpenFile(path, os.O_WRONLY, 0)
		require.NoError(t, err)
		require.NoError(t, writer.Close())
	}
	assert.Empty(t, d.scan())
	assert.Zero(t, d.Sum(sourcetest.MetricRejected))
}

func TestFileIsMoved(t *testing.T) {
	d := &folder{path: t.TempDir(), clock: time.Now()}
	// The folder that files are moved to matches the glob: what is there is not read again.
	target := filepath.Join(d.path, "done")
	more := fmt.Sprintf(", after_read: move, move_to: '%s'", target)
	d.fixture = newFixture(t, d.config(more)).start(nil)
	d.attach()
	d.put("a/x.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), 2*time.Hour)
	d.put("b/x.pb.gz", sourcetest.Captured(t, "go-mutex.pb.gz"), time.Hour)
	assert.Len(t, d.scan(), 2)
	assert.Empty(t, d.scan())
	moved, err := os.ReadDir(target)
	require.NoError(t, err)
	require.Len(t, moved, 2)
	assert.Equal(t, "x.pb.gz", moved[0].Name())
	assert.Regexp(t, `^x\.pb\.gz\.\d{19}$`, moved[1].Name())
	for i, want := range []string{"go-heap.pb.gz", "go-mutex.pb.gz"} {
		got := profiletest.FileBytes(t, filepath.Join(target, moved[i].Name()))
		assert.Equal(t, sourcetest.Captured(t, want), got)
	}
	assert.Empty(t, d.reader.seen.files, "files that the reader moved are forgotten at once")
}

// A file that cannot be moved is not read again, and is reported once.
func TestFileThatStays(t *testing.T) {
	d := newFolder(t, ", after_read: move, move_to: '"+filepath.Join(t.TempDir(), "done")+"'", nil)
	require.NoError(t, os.RemoveAll(d.reader.moveTo))
	require.NoError(t, os.WriteFile(d.reader.moveTo, nil, 0o600), "a file where the folder was")
	path := d.put("x.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour)
	assert.Equal(t, []string{path}, d.scan())
	assert.Empty(t, d.scan())
	assert.FileExists(t, path)
	assert.Equal(t, 1, d.Logs.FilterMessageSnippet("cannot delete or move").Len())

	require.NoError(t, os.Remove(d.reader.moveTo))
	require.NoError(t, os.Mkdir(d.reader.moveTo, 0o700))
	assert.Empty(t, d.scan())
	assert.NoFileExists(t, path)
}

// Somebody removes the folder that files are moved to, while the receiver runs.
func TestFileIsMovedToAFolderThatWasRemoved(t *testing.T) {
	d := newFolder(t, ", after_read: move, move_to: '"+filepath.Join(t.TempDir(), "done")+"'", nil)
	require.NoError(t, os.RemoveAll(d.reader.moveTo))
	path := d.put("x.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour)
	assert.Equal(t, []string{path}, d.scan())
	assert.Empty(t, d.scan(), "it is not delivered again")
	assert.NoFileExists(t, path)
	assert.FileExists(t, filepath.Join(d.reader.moveTo, "x.pb.gz"))
}

// Several receivers move files of one name to one folder. None is lost.
func TestFilesOfOneNameAreMoved(t *testing.T) {
	const movers, files = 4, 500
	from, target := t.TempDir(), t.TempDir()
	var moving sync.WaitGroup
	for i := range movers {
		folder := filepath.Join(from, fmt.Sprint(i))
		require.NoError(t, os.Mkdir(folder, 0o700))
		moving.Go(func() {
			for j := range files {
				path := filepath.Join(folder, "x")
				assert.NoError(t, os.WriteFile(path, fmt.Append(nil, i, j), 0o600))
				assert.NoError(t, move(path, target))
			}
		})
	}
	moving.Wait()
	moved, err := os.ReadDir(target)
	require.NoError(t, err)
	require.Len(t, moved, movers*files)
	for _, file := range moved {
		info, err := file.Info()
		require.NoError(t, err)
		assert.Positive(t, info.Size())
	}
	require.Error(t, move(filepath.Join(from, "gone"), target))
	moved, err = os.ReadDir(target)
	require.NoError(t, err)
	require.Len(t, moved, movers*files, "the name of a file that is not there is free again")
}

func TestMoveAcross(t *testing.T) {
	folder := t.TempDir()
	source, target := filepath.Join(folder, "a"), filepath.Join(folder, "b")
	require.NoError(t, os.WriteFile(source, []byte("x"), 0o600))
	require.NoError(t, moveAcross(source, target))
	assert.NoFileExists(t, source)
	got := profiletest.FileBytes(t, target)
	assert.Equal(t, "x", string(got))

	require.Error(t, moveAcross(source, target), "the source is gone")
	require.NoError(t, os.WriteFile(source, []byte("x"), 0o600))
	require.Error(t, moveAcross(source, filepath.Join(folder, "missing", "a")))
	assert.FileExists(t, source)
	require.NoError(t, moveAcross(source, target), "the name exists")
	both, err := filepath.Glob(target + "*")
	require.NoError(t, err)
	assert.Len(t, both, 2)
	left, err := filepath.Glob(filepath.Join(folder, ".moving-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// A folder in a mounted ConfigMap: the files are links into a folder that is a link into a folder named by the time.
// Another link forms a loop, and a file has a second name. Each file is read once.
func TestFileIsReadOnceWhateverItsPaths(t *testing.T) {
	for _, afterRead := range []string{"keep", "delete"} {
		t.Run(afterRead, func(t *testing.T) {
			d := newFolder(t, ", after_read: "+afterRead, nil)
			inside := d.put("..2026_11_21/a.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), 2*time.Hour)
			plain := d.put("b.pb.gz", sourcetest.Captured(t, "go-mutex.pb.gz"), time.Hour)
			stable := filepath.Join(d.path, "a.pb.gz")
			require.NoError(t, os.Symlink("..2026_11_21", filepath.Join(d.path, "..data")))
			require.NoError(t, os.Symlink("..data/a.pb.gz", stable))
			require.NoError(t, os.Symlink(".", filepath.Join(d.path, "circle")))
			require.NoError(t, os.Link(plain, filepath.Join(d.path, "second.pb.gz")))
			if afterRead == "keep" {
				assert.Equal(t, []string{stable, plain}, d.scan())
			} else {
				assert.Equal(t, []string{inside, plain}, d.scan())
				assert.NoFileExists(t, inside)
				// Under its other name it is a file that was not read: nothing tells hard links to a removed file apart from new
				// files.
				assert.Equal(t, []string{filepath.Join(d.path, "second.pb.gz")}, d.scan())
			}
			assert.Empty(t, d.scan())
		})
	}
}

// A file that is replaced while it is delivered is read again before it is removed.
func TestFileReplacedWhileItIsDelivered(t *testing.T) {
	d := newFolder(t, ", after_read: delete", nil)
	path := d.put("x.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour)
	d.Next.Err = func(n int) error {
		if n == 0 {
			d.put("x.pb.gz", sourcetest.Captured(t, "go-mutex.pb.gz"), 30*time.Minute)
		}
		return nil
	}
	assert.Equal(t, []string{path}, d.scan())
	assert.FileExists(t, path)
	assert.Equal(t, []string{path}, d.scan(), "the new content")
	assert.NoFileExists(t, path)
}

// A file waits while the budget is used up.
func TestFileWaitsForTheBudget(t *testing.T) {
	d := newFolder(t, ", after_read: delete", nil)
	d.reader.ingest.Budget = budget.New(16 << 20)
	release := collectortest.FillBudget(t, d.reader.ingest.Budget)
	path := d.put("x.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour)
	assert.Empty(t, d.scan())
	assert.Empty(t, d.scan())
	assert.Equal(t, int64(2), d.Sum(sourcetest.MetricRejected, "reason", string(ingest.Busy), "source", "file"))
	assert.Equal(t, 1, d.Logs.FilterMessageSnippet("cannot accept a profile").Len(), "it is said once")
	assert.FileExists(t, path)
	release()
	assert.Equal(t, []string{path}, d.scan())
	assert.NoFileExists(t, path)
}
