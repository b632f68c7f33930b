// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

var storeID = component.MustNewID("file_storage")

func TestFileProgressSurvivesARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		more  string
		again int
	}{
		"with a store":  {", storage: file_storage", 0},
		"without store": {"", 1},
	} {
		t.Run(name, func(t *testing.T) {
			store := collectortest.NewDisk(nil)
			extensions := sourcetest.Host{storeID: store}
			d := newFolder(t, tc.more, extensions)
			d.put("1.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour)
			require.Len(t, d.scan(), 1)
			d.restart(tc.more, extensions)
			second := d.put("2.pb.gz", sourcetest.Captured(t, "go-mutex.pb.gz"), time.Minute)
			got := d.scan()
			assert.Len(t, got, 1+tc.again)
			assert.Contains(t, got, second)
			if tc.again == 0 {
				assert.Equal(t, "Receiver/pprof/file", store.Owner)
				assert.Equal(t, 1, store.Open, "the first client was closed")
			}
		})
	}
}

// Progress is stored before Shutdown, which a crash does not run.
func TestFileProgressSurvivesACrash(t *testing.T) {
	store := collectortest.NewDisk(nil)
	extensions := sourcetest.Host{storeID: store}
	d := newFolder(t, ", storage: file_storage", extensions)
	d.put("1.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour)
	require.Len(t, d.scan(), 1)
	crashed := d.reader
	d.reader = d.another(d.config(", storage: file_storage"))
	d.start(extensions)
	d.attach()
	assert.Empty(t, d.scan())
	require.NoError(t, crashed.Shutdown(t.Context()))
}

func TestFileStoreFaults(t *testing.T) {
	t.Run("it cannot be read", func(t *testing.T) {
		store := collectortest.NewDisk(nil)
		store.Fail(errors.New("disk"), nil)
		f := newFixture(t, "file: {include: '*', storage: file_storage}")
		assert.ErrorContains(t, f.reader.Start(t.Context(), sourcetest.Host{storeID: store}),
			"read the list of files that were read: disk")
		assert.Zero(t, store.Open)
	})
	t.Run("it is another extension", func(t *testing.T) {
		f := newFixture(t, "file: {include: '*', storage: file_storage}")
		assert.ErrorContains(t, f.reader.Start(t.Context(), sourcetest.Host{storeID: nil}), "is not a storage extension")
	})
	for name, content := range map[string]string{"it holds nonsense": "{", "it is of another version": `{"version":9}`} {
		t.Run(name, func(t *testing.T) {
			store := collectortest.NewDisk(map[string][]byte{storageKey: []byte(content)})
			d := newFolder(t, ", storage: file_storage", sourcetest.Host{storeID: store})
			d.put("1.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour)
			assert.Len(t, d.scan(), 1)
			assert.Equal(t, 1, d.Logs.FilterMessageSnippet("cannot decode the list").Len())
		})
	}
	t.Run("it cannot be written", func(t *testing.T) {
		store := collectortest.NewDisk(nil)
		d := newFolder(t, ", storage: file_storage", sourcetest.Host{storeID: store})
		store.Fail(nil, errors.New("full"))
		d.put("1.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour)
		assert.Len(t, d.scan(), 1)
		assert.Empty(t, d.scan(), "it is still remembered in memory")
		assert.Positive(t, d.Logs.FilterMessageSnippet("cannot store the list").Len())
	})
}

// Files that are gone are forgotten, but not at once: a file system that is unavailable for a moment must not make all
// its files new.
func TestFileForgets(t *testing.T) {
	d := newFolder(t, "", nil)
	data := sourcetest.Captured(t, "go-heap.pb.gz")
	at := d.clock.Add(-time.Hour)
	path := d.put("x.pb.gz", data, time.Hour)
	require.Len(t, d.scan(), 1)
	away := path + ".away"
	for range 2 { // together it is away for longer than forgetAfter
		require.NoError(t, os.Rename(path, away))
		assert.Empty(t, d.scan())
		d.clock = d.clock.Add(forgetAfter * 2 / 3)
		assert.Empty(t, d.scan())
		require.NoError(t, os.Rename(away, path))
		require.NoError(t, os.Chtimes(path, time.Time{}, at))
		assert.Empty(t, d.scan(), "it was only away")
	}

	require.NoError(t, os.Remove(path))
	assert.Empty(t, d.scan())
	d.clock = d.clock.Add(forgetAfter)
	assert.Empty(t, d.scan())
	assert.Empty(t, d.reader.seen.files)
}

// A file that a rotation has renamed, or a link to a file that was removed, is not delivered again.
func TestFileThatWasRenamed(t *testing.T) {
	d := newFolder(t, "", nil)
	first := d.put("a.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), 3*time.Hour)
	assert.Equal(t, []string{first}, d.scan())
	name := func(n int) string { return filepath.Join(d.path, fmt.Sprintf("a.%d.pb.gz", n)) }
	require.NoError(t, os.Rename(first, name(1)))
	d.put("a.pb.gz", sourcetest.Captured(t, "go-mutex.pb.gz"), 2*time.Hour)
	assert.Equal(t, []string{first}, d.scan(), "only the new one")
	require.NoError(t, os.Rename(name(1), name(2)))
	require.NoError(t, os.Rename(first, name(1)))
	assert.Empty(t, d.scan(), "names move on")
	require.NoError(t, os.Link(name(2), filepath.Join(d.path, "link.pb.gz")))
	assert.Empty(t, d.scan())
	require.NoError(t, os.Remove(name(2)))
	assert.Empty(t, d.scan(), "it has another name")

	copied := d.put("copy.pb.gz", sourcetest.Captured(t, "go-mutex.pb.gz"), time.Hour)
	assert.Equal(t, []string{copied}, d.scan(), "the other file with this content is still there")
}
