// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// folder is a directory of profiles and their reader. The test starts each scan and sets the clock.
type folder struct {
	*fixture
	path  string
	clock time.Time
}

// newFolder starts a reader whose own first scan would begin after an hour.
func newFolder(t *testing.T, more string, extensions sourcetest.Host) *folder {
	d := &folder{path: t.TempDir(), clock: time.Now()}
	d.fixture = newFixture(t, d.config(more)).start(extensions)
	d.attach()
	return d
}

func (d *folder) config(more string) string {
	return fmt.Sprintf("file: {include: '%s/**/*.pb.gz', initial_delay: 1h%s}\n", d.path, more)
}

func (d *folder) attach() {
	d.reader.now = func() time.Time { return d.clock }
}

// restart shuts the reader down and starts another one on the same folder.
func (d *folder) restart(more string, extensions sourcetest.Host) {
	d.T.Helper()
	d.stop()
	d.reader = d.another(d.config(more))
	d.start(extensions)
	d.attach()
}

// put writes a file whose last change is age ago.
func (d *folder) put(name string, data []byte, age time.Duration) string {
	d.T.Helper()
	path := filepath.Join(d.path, name)
	require.NoError(d.T, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(d.T, os.WriteFile(path, data, 0o600))
	require.NoError(d.T, os.Chtimes(path, time.Time{}, d.clock.Add(-age)))
	return path
}

// scan lets an interval pass, scans, and returns the paths that the pipeline accepted, in order.
func (d *folder) scan() []string {
	d.clock = d.clock.Add(10 * time.Second)
	before := len(d.Next.All())
	d.reader.scan(d.T.Context(), d.T.Context())
	paths := []string{}
	for _, pd := range d.Next.All()[before:] {
		paths = append(paths, pathOf(d.T, pd))
	}
	return paths
}

func pathOf(t testing.TB, pd pprofile.Profiles) string {
	return sourcetest.ResourceOf(t, pd)["file.path"].(string)
}

func TestFileReadsEachOnce(t *testing.T) {
	d := newFolder(t, "", nil)
	young := d.put("a/b/young.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Minute)
	old := d.put("old.pb.gz", sourcetest.Captured(t, "go-mutex.pb.gz"), time.Hour)
	d.put("other.txt", sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour)
	require.NoError(t, os.Mkdir(filepath.Join(d.path, "folder.pb.gz"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(d.path, "pipe.pb.gz"), 0o600), "opening a pipe would block")

	assert.Equal(t, []string{old, young}, d.scan(), "the oldest first")
	assert.Equal(t, map[string]any{"service.name": "unknown_service", "file.name": "old.pb.gz", "file.path": old},
		sourcetest.ResourceOf(t, d.Next.All()[0]))
	assert.Empty(t, d.scan())

	// New content under the same name is a new file; the same content with a new time is not.
	d.put("old.pb.gz", sourcetest.Captured(t, "go-block.pb.gz"), time.Minute)
	d.put("a/b/young.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), 2*time.Minute)
	assert.Equal(t, []string{old}, d.scan())
	assert.Empty(t, d.scan())
	assert.Positive(t, d.Sum("otelcol_receiver_accepted_profile_samples", "transport", "file"))
}

// A scan lists at most `max_entries` files and folders, however many there are, and what it leaves out is reported.
func TestEntriesAreBounded(t *testing.T) {
	d := newFolder(t, ", max_entries: 300, after_read: delete", nil)
	const inAll = 250
	for n := range inAll {
		d.put(fmt.Sprintf("%03d/a.pb.gz", n), sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour)
	}
	read := 0
	for scan := range 3 {
		before, folders := len(d.Next.All()), inAll
		d.scan()
		count := len(d.Next.All()) - before
		assert.LessOrEqual(t, folders+count, 300)
		read += count
		if scan == 0 {
			assert.Equal(t, 50, count, "the files in the first folders")
		}
	}
	assert.Equal(t, 150, read)
	assert.EqualValues(t, 3, d.Sum("otelcol_receiver_pprof_file_incomplete_scans"))
	assert.Equal(t, 1, d.Logs.FilterMessageSnippet("cannot list all files and folders").Len())
	for range 2 {
		read += len(d.scan())
	}
	assert.Equal(t, inAll, read, "what was left out is read when there is room")
}

// A folder with many sub-folders costs memory for those that are listed alone.
func TestFoldersAreBounded(t *testing.T) {
	path := t.TempDir()
	for n := range 5000 {
		require.NoError(t, os.Mkdir(filepath.Join(path, fmt.Sprintf("%04d", n)), 0o700))
	}
	for _, pattern := range []string{"**", "**/*.pb.gz", "*", "*/*", "*/**/x/*", "{*/a,b*}/*.pb.gz"} {
		few := testing.AllocsPerRun(1, func() {
			_, err := glob(filepath.Join(path, pattern), 100, "")
			assert.ErrorIs(t, err, errTooMany, pattern)
		})
		assert.Less(t, few, 5000.0, pattern)
	}
	paths, err := glob(filepath.Join(path, "*"), 5000, "")
	require.NoError(t, err)
	assert.Len(t, paths, 5000)
}

func TestNoFileMatches(t *testing.T) {
	d := newFolder(t, "", nil)
	assert.Empty(t, d.scan())
	assert.Empty(t, d.scan())
	assert.Equal(t, 1, d.Logs.FilterMessageSnippet("no file matches `include` yet").Len())
}

// A folder as `include` reads nothing.
func TestFolderAsInclude(t *testing.T) {
	path := t.TempDir()
	f := newFixture(t, fmt.Sprintf("file: {include: '%s', initial_delay: 1h}", path)).start(nil)
	for range 2 {
		f.reader.scan(t.Context(), t.Context())
	}
	lines := f.Logs.FilterMessageSnippet("append /*, or /**").All()
	require.Len(t, lines, 1)
	assert.Equal(t, path, lines[0].ContextMap()["folder"])
}

// Files of the same age are read in the order of their names.
func TestFileOrder(t *testing.T) {
	d := newFolder(t, "", nil)
	var want []string
	for n := range 30 {
		want = append(want, d.put(fmt.Sprintf("%02d.pb.gz", n), sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour))
	}
	assert.Equal(t, want, d.scan())
}

// Each of several decompression bombs costs no more than the limit allows.
func TestFilesAreBoundedByTheLimit(t *testing.T) {
	const limit = 4 << 20
	const size = 100 << 20
	bomb := profiletest.Gzip(append(binary.AppendUvarint([]byte{0x32}, size), make([]byte, size)...)) // one string
	profiletest.RequireCostOfEach(t, profiletest.BoundOf(limit, 24<<20, 4), func() func() {
		d := newFolder(t, fmt.Sprintf("}\nlimits: {max_profile_bytes: %d", limit), nil)
		for n := range 4 {
			d.put(fmt.Sprintf("bomb-%d.pb.gz", n), bomb, time.Hour)
		}
		good := d.put("good.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Minute)
		return func() {
			assert.Equal(t, []string{good}, d.scan())
			assert.Len(t, d.AwaitLog(4, "cannot read a profile from a file"), 4)
		}
	})
}

func TestFileBeingWrittenIsLeft(t *testing.T) {
	d := newFolder(t, "", nil)
	whole := sourcetest.Captured(t, "go-heap.pb.gz")
	for n := 1; n <= 4; n++ {
		// It is written between two scans, so that it is younger than an interval at each.
		path := d.put("x.pb.gz", whole[:len(whole)*n/4], -5*time.Second)
		assert.Empty(t, d.scan(), "part %d", n)
		if n == 4 {
			assert.Equal(t, []string{path}, d.scan(), "unchanged for an interval")
		}
	}
	assert.Zero(t, d.Sum(sourcetest.MetricRejected), "no part of it was reported as damaged")

	// A file whose clock runs ahead is read once two scans find it unchanged.
	ahead := d.put("ahead.pb.gz", whole, -time.Hour)
	assert.Empty(t, d.scan())
	assert.Equal(t, []string{ahead}, d.scan())
}

func TestFileBadIsReportedOnce(t *testing.T) {
	store := collectortest.NewDisk(nil)
	extensions := sourcetest.Host{storeID: store}
	d := newFolder(t, ", storage: file_storage", extensions)
	d.put("text.pb.gz", sourcetest.Captured(t, "go-goroutine-debug1.txt"), time.Hour)
	d.put("cut.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz")[:900], time.Hour)
	d.put("empty.pb.gz", nil, time.Hour)
	good := d.put("good.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Minute)
	assert.Equal(t, []string{good}, d.scan(), "bad files do not hold up others")
	assert.Empty(t, d.scan())
	d.restart(", storage: file_storage", extensions)
	assert.Empty(t, d.scan())

	lines := d.Logs.FilterMessageSnippet("cannot read a profile from a file").All()
	require.Len(t, lines, 3)
	for _, line := range lines {
		assert.Contains(t, line.ContextMap()["error"], "read profile from \""+d.path)
	}
	assert.Equal(t, int64(2), d.Sum(sourcetest.MetricRejected, "reason", "not_pprof", "source", "file"))
	assert.Equal(t, int64(1), d.Sum(sourcetest.MetricRejected, "reason", "empty", "source", "file"))

	// A file that changes is read again.
	cut := d.put("cut.pb.gz", sourcetest.Captured(t, "go-mutex.pb.gz"), time.Minute)
	assert.Equal(t, []string{cut}, d.scan())
}

// Thousands of files that are no profiles do not flood the log.
func TestManyBadFiles(t *testing.T) {
	d := newFolder(t, "", nil)
	const files = 100
	for n := range files {
		d.put(fmt.Sprintf("%03d.pb.gz", n), []byte("no profile"), time.Hour)
	}
	assert.Empty(t, d.scan())
	lines := d.Logs.FilterMessageSnippet("cannot read a profile from a file").All()
	require.Len(t, lines, 10)
	assert.Contains(t, lines[9].ContextMap(), "suppressing_more_for")
	assert.EqualValues(t, files, d.Sum(sourcetest.MetricRejected, "source", "file"))
}

func TestFileTooLarge(t *testing.T) {
	d := newFolder(t, "}\nlimits: {max_profile_bytes: 1000", nil)
	d.put("x.pb.gz", make([]byte, 1001), time.Hour)
	assert.Empty(t, d.scan())
	assert.Empty(t, d.scan())
	assert.Equal(t, int64(1), d.Sum(sourcetest.MetricRejected, "reason", "too_large", "source", "file"))
}

// TestFileAboveTheBudget has a file that is smaller than max_profile_bytes, while the memory limit of the process
// leaves less for a body.
func TestFileAboveTheBudget(t *testing.T) {
	d := newFolder(t, "", nil)
	d.reader.ingest.Budget = budget.New(1 << 20)
	limit := d.reader.ingest.Budget.MaxBodyBytes()
	path := d.put("x.pb.gz", make([]byte, limit+1), time.Hour)
	good := d.put("good.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Minute)
	assert.Equal(t, []string{good}, d.scan(), "it holds up no other")
	assert.Empty(t, d.scan())
	assert.Equal(t, int64(1), d.Sum(sourcetest.MetricRejected, "reason", "too_large", "source", "file"))
	lines := d.Logs.FilterMessageSnippet("cannot read a profile from a file").All()
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0].ContextMap()["error"], path)
	assert.Contains(t, lines[0].ContextMap()["error"],
		fmt.Sprintf("%d bytes, and the memory limit of this process leaves %d for one body", limit+1, limit))
}

func TestFileThatCannotBeOpened(t *testing.T) {
	d := newFolder(t, "", nil)
	// Root reads what it has no permission for, so that the file is replaced under the reader.
	path := d.put("x.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour)
	found := d.reader.find(t.Context())
	require.NoError(t, os.Remove(path))
	for range 3 {
		assert.True(t, d.reader.visit(t.Context(), found[0]))
	}
	assert.Equal(t, 1, d.Logs.FilterMessageSnippet("cannot read a file").Len())
	assert.Equal(t, int64(1), d.Sum(sourcetest.MetricRejected, "reason", "unreadable", "source", "file"))
	d.put("x.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), time.Hour+10*time.Second)
	assert.Equal(t, []string{path}, d.scan(), "the reader retries")
}

func TestFileRefusedForNow(t *testing.T) {
	d := newFolder(t, ", after_read: delete", nil)
	first := d.put("1.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), 2*time.Hour)
	second := d.put("2.pb.gz", sourcetest.Captured(t, "go-mutex.pb.gz"), time.Hour)
	d.Next.RefuseWith(errors.New("full"))
	assert.Empty(t, d.scan())
	assert.Empty(t, d.scan())
	assert.Equal(t, 2, d.Next.Attempts(), "after one refusal the others wait")
	assert.Equal(t, 1, d.Logs.FilterMessageSnippet("cannot accept a profile").Len())
	assert.FileExists(t, first)

	d.Next.RefuseWith(nil)
	assert.Equal(t, []string{first, second}, d.scan())
	assert.NoFileExists(t, first)
	assert.NoFileExists(t, second)
	assert.Equal(t, 1, d.Logs.FilterMessageSnippet("accepting profiles again").Len())
}

func TestFileRefusedPermanently(t *testing.T) {
	d := newFolder(t, ", after_read: delete", nil)
	first := d.put("1.pb.gz", sourcetest.Captured(t, "go-heap.pb.gz"), 2*time.Hour)
	second := d.put("2.pb.gz", sourcetest.Captured(t, "go-mutex.pb.gz"), time.Hour)
	d.Next.Err = func(n int) error {
		if n == 0 {
			return consumererror.NewPermanent(errors.New("no"))
		}
		return nil
	}
	assert.Equal(t, []string{second}, d.scan())
	assert.Empty(t, d.scan())
	assert.FileExists(t, first, "a file that was not accepted is not deleted")
}

// The loop itself, with a relative glob.
func TestFileScansByItself(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t,
		os.WriteFile("x.pb.gz",
			profiletest.Gzip([]byte("\x0a\x04\x08\x01\x10\x02\x12\x02\x12\x00\x32\x00\x32\x01a\x32\x01b")), 0o600))
	f := startFixture(t, "file: {include: '*.pb.gz', initial_delay: 1ms, collection_interval: 2ms, timeout: 1m}")
	path, err := filepath.Abs("x.pb.gz")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return f.Logs.Len() > 0 || len(f.Next.All()) > 0 }, sourcetest.Patience,
		time.Millisecond)
	if all := f.Next.All(); assert.NotEmpty(t, all, "%v", f.Logs.All()) {
		assert.Equal(t, path, pathOf(t, all[0]))
	}
}
