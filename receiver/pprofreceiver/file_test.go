// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

var storeID = component.MustNewID("file_storage")

// memoryStore is a storage extension whose content outlives its clients, as a file's would.
type memoryStore struct {
	component.StartFunc
	component.ShutdownFunc

	mu     sync.Mutex
	data   map[string][]byte
	opened string
	open   int
	fail   error
}

func (m *memoryStore) GetClient(_ context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened = fmt.Sprintf("%s/%s/%s", kind, id, name)
	m.open++
	return &memoryClient{Client: storage.NewNopClient(), store: m}, nil
}

type memoryClient struct {
	storage.Client // the operations that this receiver does not use
	store          *memoryStore
}

func (c *memoryClient) Get(_ context.Context, key string) ([]byte, error) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	return c.store.data[key], c.store.fail
}

func (c *memoryClient) Set(_ context.Context, key string, value []byte) error {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	if c.store.fail == nil {
		c.store.data[key] = value
	}
	return c.store.fail
}

func (c *memoryClient) Close(context.Context) error {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.store.open--
	return nil
}

// folder is a directory of profiles, read by a receiver whose looks the test makes by itself and
// whose clock it holds.
type folder struct {
	*fixture
	path   string
	reader *fileReader
	clock  time.Time
}

// newFolder starts a receiver that would not look by itself for an hour.
func newFolder(t *testing.T, more string, extensions host) *folder {
	d := &folder{path: t.TempDir(), clock: time.Now()}
	d.fixture = newFixture(t, d.config(more)).start(extensions)
	d.attach(d.receiver)
	return d
}

func (d *folder) config(more string) string {
	return fmt.Sprintf("file: {include: '%s/**/*.pb.gz', initial_delay: 1h%s}\n", d.path, more)
}

func (d *folder) attach(r *pprofReceiver) {
	d.reader = r.sources[0].(*fileReader)
	d.reader.now = func() time.Time { return d.clock }
}

// restart shuts the receiver down and starts another with the same surroundings.
func (d *folder) restart(more string, extensions host) {
	d.t.Helper()
	d.stop()
	d.receiver = d.another(d.config(more))
	d.start(extensions)
	d.attach(d.receiver)
}

// put writes a file whose last change is age ago.
func (d *folder) put(name string, data []byte, age time.Duration) string {
	d.t.Helper()
	path := filepath.Join(d.path, name)
	require.NoError(d.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(d.t, os.WriteFile(path, data, 0o600))
	require.NoError(d.t, os.Chtimes(path, time.Time{}, d.clock.Add(-age)))
	return path
}

// look lets an interval pass and looks, and gives the paths that the pipeline took, in order.
func (d *folder) look() []string {
	d.clock = d.clock.Add(10 * time.Second)
	before := len(d.next.all())
	d.reader.look(d.t.Context(), d.t.Context())
	paths := []string{}
	for _, pd := range d.next.all()[before:] {
		paths = append(paths, pathOf(d.t, pd))
	}
	return paths
}

func pathOf(t testing.TB, pd pprofile.Profiles) string {
	return resourceOf(t, pd)["file.path"].(string)
}

func TestFileReadsEachOnce(t *testing.T) {
	d := newFolder(t, "", nil)
	young := d.put("a/b/young.pb.gz", captured(t, "go-heap.pb.gz"), time.Minute)
	old := d.put("old.pb.gz", captured(t, "go-mutex.pb.gz"), time.Hour)
	d.put("other.txt", captured(t, "go-heap.pb.gz"), time.Hour)
	require.NoError(t, os.Mkdir(filepath.Join(d.path, "folder.pb.gz"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(d.path, "pipe.pb.gz"), 0o600), "opening a pipe would wait for ever")

	assert.Equal(t, []string{old, young}, d.look(), "the oldest first")
	assert.Equal(t, map[string]any{"service.name": "unknown_service", "file.name": "old.pb.gz", "file.path": old},
		resourceOf(t, d.next.all()[0]))
	assert.Empty(t, d.look())

	// New content under the same name is a new file; the same content with a new time is not.
	d.put("old.pb.gz", captured(t, "go-block.pb.gz"), time.Minute)
	d.put("a/b/young.pb.gz", captured(t, "go-heap.pb.gz"), 2*time.Minute)
	assert.Equal(t, []string{old}, d.look())
	assert.Empty(t, d.look())
	assert.Positive(t, d.sum("otelcol_receiver_accepted_profile_samples", "transport", "file"))
}

func TestFileBeingWrittenIsLeft(t *testing.T) {
	d := newFolder(t, "", nil)
	whole := captured(t, "go-heap.pb.gz")
	for n := 1; n <= 4; n++ {
		// It is written between two looks, so that it is younger than an interval at each.
		path := d.put("x.pb.gz", whole[:len(whole)*n/4], -5*time.Second)
		assert.Empty(t, d.look(), "part %d", n)
		if n == 4 {
			assert.Equal(t, []string{path}, d.look(), "unchanged for an interval")
		}
	}
	assert.Zero(t, d.sum(metricRejected), "no part of it was taken for a damaged file")

	// One whose clock runs ahead is read when two looks find the same.
	ahead := d.put("ahead.pb.gz", whole, -time.Hour)
	assert.Empty(t, d.look())
	assert.Equal(t, []string{ahead}, d.look())
}

// A file that changes between being found and being read is left for the next look.
func TestFileChangedMeanwhile(t *testing.T) {
	d := newFolder(t, "", nil)
	whole := captured(t, "go-heap.pb.gz")
	path := d.put("x.pb.gz", whole[:500], time.Hour)
	found := d.reader.find()
	require.Len(t, found, 1)
	d.put("x.pb.gz", whole, 0)
	assert.True(t, d.reader.visit(t.Context(), found[0]))
	assert.Empty(t, d.next.all())
	assert.Zero(t, d.sum(metricRejected))
	assert.Equal(t, []string{path}, d.look())
}

func TestFileBadIsReportedOnce(t *testing.T) {
	store := &memoryStore{data: map[string][]byte{}}
	extensions := host{storeID: store}
	d := newFolder(t, ", storage: file_storage", extensions)
	d.put("text.pb.gz", captured(t, "go-goroutine-debug1.txt"), time.Hour)
	d.put("cut.pb.gz", captured(t, "go-heap.pb.gz")[:900], time.Hour)
	d.put("empty.pb.gz", nil, time.Hour)
	good := d.put("good.pb.gz", captured(t, "go-heap.pb.gz"), time.Minute)
	assert.Equal(t, []string{good}, d.look(), "the bad ones keep no other back")
	assert.Empty(t, d.look())
	d.restart(", storage: file_storage", extensions)
	assert.Empty(t, d.look())

	lines := d.logs.FilterMessageSnippet("a file was not taken").All()
	require.Len(t, lines, 3)
	for _, line := range lines {
		assert.Contains(t, line.ContextMap()["error"], "read pprof from \""+d.path)
	}
	assert.Equal(t, int64(2), d.sum(metricRejected, "reason", "not_pprof", "source", "file"))
	assert.Equal(t, int64(1), d.sum(metricRejected, "reason", "empty", "source", "file"))

	// When it changes it is read.
	cut := d.put("cut.pb.gz", captured(t, "go-mutex.pb.gz"), time.Minute)
	assert.Equal(t, []string{cut}, d.look())
}

func TestFileTooLarge(t *testing.T) {
	d := newFolder(t, "}\nlimits: {max_profile_bytes: 1000", nil)
	d.put("x.pb.gz", make([]byte, 1001), time.Hour)
	assert.Empty(t, d.look())
	assert.Empty(t, d.look())
	assert.Equal(t, int64(1), d.sum(metricRejected, "reason", "too_large", "source", "file"))
}

func TestFileThatCannotBeOpened(t *testing.T) {
	d := newFolder(t, "", nil)
	// Root reads what it has no permission for, so that the file is replaced under the reader.
	path := d.put("x.pb.gz", captured(t, "go-heap.pb.gz"), time.Hour)
	found := d.reader.find()
	require.NoError(t, os.Remove(path))
	for range 3 {
		assert.True(t, d.reader.visit(t.Context(), found[0]))
	}
	assert.Equal(t, 1, d.logs.FilterMessageSnippet("cannot be read").Len())
	assert.Equal(t, int64(1), d.sum(metricRejected, "reason", "unreadable", "source", "file"))
	d.put("x.pb.gz", captured(t, "go-heap.pb.gz"), time.Hour+10*time.Second)
	assert.Equal(t, []string{path}, d.look(), "it is tried again")
}

func TestFileRefusedForNow(t *testing.T) {
	d := newFolder(t, ", after_read: delete", nil)
	first := d.put("1.pb.gz", captured(t, "go-heap.pb.gz"), 2*time.Hour)
	second := d.put("2.pb.gz", captured(t, "go-mutex.pb.gz"), time.Hour)
	d.next.refuseWith(errors.New("full"))
	assert.Empty(t, d.look())
	assert.Empty(t, d.look())
	assert.Equal(t, 2, d.next.attempts(), "after one refusal the others wait")
	assert.Equal(t, 1, d.logs.FilterMessageSnippet("no profile taken").Len())
	assert.FileExists(t, first)

	d.next.refuseWith(nil)
	assert.Equal(t, []string{first, second}, d.look())
	assert.NoFileExists(t, first)
	assert.NoFileExists(t, second)
	assert.Equal(t, 1, d.logs.FilterMessageSnippet("works again").Len())
}

func TestFileRefusedForGood(t *testing.T) {
	d := newFolder(t, ", after_read: delete", nil)
	first := d.put("1.pb.gz", captured(t, "go-heap.pb.gz"), 2*time.Hour)
	second := d.put("2.pb.gz", captured(t, "go-mutex.pb.gz"), time.Hour)
	d.next.err = func(n int) error {
		if n == 0 {
			return consumererror.NewPermanent(errors.New("no"))
		}
		return nil
	}
	assert.Equal(t, []string{second}, d.look())
	assert.Empty(t, d.look())
	assert.FileExists(t, first, "what was not taken is not deleted")
}

func TestFileProgressSurvivesARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		more  string
		again int
	}{
		"with a store":  {", storage: file_storage", 0},
		"without store": {"", 1},
	} {
		t.Run(name, func(t *testing.T) {
			store := &memoryStore{data: map[string][]byte{}}
			extensions := host{storeID: store}
			d := newFolder(t, tc.more, extensions)
			d.put("1.pb.gz", captured(t, "go-heap.pb.gz"), time.Hour)
			require.Len(t, d.look(), 1)
			d.restart(tc.more, extensions)
			second := d.put("2.pb.gz", captured(t, "go-mutex.pb.gz"), time.Minute)
			got := d.look()
			assert.Len(t, got, 1+tc.again)
			assert.Contains(t, got, second)
			if tc.again == 0 {
				assert.Equal(t, "Receiver/pprof/file", store.opened)
				assert.Equal(t, 1, store.open, "the first client was closed")
			}
		})
	}
}

// A crash runs no Shutdown: what was read is stored by then.
func TestFileProgressSurvivesACrash(t *testing.T) {
	store := &memoryStore{data: map[string][]byte{}}
	extensions := host{storeID: store}
	d := newFolder(t, ", storage: file_storage", extensions)
	d.put("1.pb.gz", captured(t, "go-heap.pb.gz"), time.Hour)
	require.Len(t, d.look(), 1)
	crashed := d.receiver
	d.receiver = d.another(d.config(", storage: file_storage"))
	d.start(extensions)
	d.attach(d.receiver)
	assert.Empty(t, d.look())
	require.NoError(t, crashed.Shutdown(t.Context()))
}

func TestFileStoreFaults(t *testing.T) {
	t.Run("it cannot be read", func(t *testing.T) {
		store := &memoryStore{fail: errors.New("disk")}
		f := newFixture(t, "file: {include: '*', storage: file_storage}")
		assert.ErrorContains(t, f.receiver.Start(t.Context(), host{storeID: store}), "read what was remembered: disk")
		assert.Zero(t, store.open)
	})
	t.Run("it is another extension", func(t *testing.T) {
		f := newFixture(t, "file: {include: '*', storage: file_storage}")
		assert.ErrorContains(t, f.receiver.Start(t.Context(), host{storeID: nil}), "is not a storage extension")
	})
	for name, content := range map[string]string{"it holds nonsense": "{", "it is of another version": `{"version":9}`} {
		t.Run(name, func(t *testing.T) {
			store := &memoryStore{data: map[string][]byte{storageKey: []byte(content)}}
			d := newFolder(t, ", storage: file_storage", host{storeID: store})
			d.put("1.pb.gz", captured(t, "go-heap.pb.gz"), time.Hour)
			assert.Len(t, d.look(), 1)
			assert.Equal(t, 1, d.logs.FilterMessageSnippet("cannot be understood").Len())
		})
	}
	t.Run("it cannot be written", func(t *testing.T) {
		store := &memoryStore{data: map[string][]byte{}}
		d := newFolder(t, ", storage: file_storage", host{storeID: store})
		store.fail = errors.New("full")
		d.put("1.pb.gz", captured(t, "go-heap.pb.gz"), time.Hour)
		assert.Len(t, d.look(), 1)
		assert.Empty(t, d.look(), "it is still remembered in memory")
		assert.Positive(t, d.logs.FilterMessageSnippet("not remembered across a restart").Len())
	})
}

func TestFileIsMoved(t *testing.T) {
	target := ""
	d := &folder{path: t.TempDir(), clock: time.Now()}
	// The folder that files are moved to matches the glob: what is there is not read again.
	target = filepath.Join(d.path, "done")
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

// Files that are gone are forgotten, but not at once: a file system that is away for a moment must
// not make all its files new.
func TestFileForgets(t *testing.T) {
	d := newFolder(t, "", nil)
	data := captured(t, "go-heap.pb.gz")
	at := d.clock.Add(-time.Hour)
	path := d.put("x.pb.gz", data, time.Hour)
	require.Len(t, d.look(), 1)
	away := path + ".away"
	require.NoError(t, os.Rename(path, away))
	assert.Empty(t, d.look())
	d.clock = d.clock.Add(forgetAfter / 2)
	require.NoError(t, os.Rename(away, path))
	require.NoError(t, os.Chtimes(path, time.Time{}, at))
	assert.Empty(t, d.look(), "it was only away")

	require.NoError(t, os.Remove(path))
	assert.Empty(t, d.look())
	d.clock = d.clock.Add(forgetAfter)
	assert.Empty(t, d.look())
	assert.Empty(t, d.reader.seen.files)
}

// The loop itself: without a test's hand on it, with a relative glob.
func TestFileLooksByItself(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("x.pb.gz", gzipped(t, []byte("\x0a\x04\x08\x01\x10\x02\x12\x02\x12\x00\x32\x00\x32\x01a\x32\x01b")), 0o600))
	f := startFixture(t, "file: {include: '*.pb.gz', initial_delay: 1ms, collection_interval: 2ms, timeout: 1m}")
	path, err := filepath.Abs("x.pb.gz")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return f.logs.Len() > 0 || len(f.next.all()) > 0 }, patience, time.Millisecond)
	if all := f.next.all(); assert.NotEmpty(t, all, "%v", f.logs.All()) {
		assert.Equal(t, path, pathOf(t, all[0]))
	}
}
