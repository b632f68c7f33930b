// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blocks"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

var allOfShop = model.Selection{Service: "shop", Profile: "process_cpu"}

// addHour adds a profile to the hour of the day that begins at midnight.
func addHour(s *Store, hour int) Added {
	start := noon.Truncate(24 * time.Hour).Add(time.Duration(hour) * time.Hour)
	return s.Add(cpu(start, 10, profiletest.Value(1, "leaf")), start.Add(10*time.Second))
}

// keepHours adds a profile to each of the first hours of the day, and writes it as soon as its hour ends.
func keepHours(s *Store, hours int) {
	for hour := range hours {
		addHour(s, hour)
		s.Maintain(noon.Truncate(24 * time.Hour).Add(time.Duration(hour+1) * time.Hour))
	}
}

// failOn lets a kind of use of files of a name, or of all if it is empty, fail until the test or the next SetFault.
func failOn(t *testing.T, op, name string, fault error) {
	t.Cleanup(func() { blockfile.SetFault(nil) })
	blockfile.SetFault(func(used, path string) error {
		if used == op && (name == "" || filepath.Base(path) == name) {
			return fault
		}
		return nil
	})
}

// A clock that is wrong for a moment deletes nothing, and makes nothing coarser. One that stays where it is, is
// believed.
func TestClockThatIsAhead(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	for _, restarts := range []bool{false, true} {
		cfg := diskConfig(t, t.TempDir())
		cfg.Disk.Downsampling = Downsampling{After: 72 * time.Hour, Step: 4 * time.Hour}
		s := open(t, cfg)
		day := noon.Truncate(24 * time.Hour)
		keepHours(s, 24)
		now := day.Add(24 * time.Hour)
		if restarts {
			require.NoError(t, s.Close())
			s = open(t, cfg)
		}
		ahead := now.Add(15 * 24 * time.Hour)
		s.Maintain(ahead)
		require.Equal(t, 24, s.Stats().Profiles)
		s.Maintain(now)
		s.Maintain(ahead.Add(time.Hour)) // the first reading of these was withdrawn
		require.Equal(t, 24, s.Stats().Profiles)
		s.Maintain(ahead.Add(2 * time.Hour))
		require.Zero(t, s.Stats().Profiles)
		require.Equal(t, 6, s.Stats().Evicted[model.EvictedAge], "the day had become coarser")
		require.NoError(t, s.Close())
	}
}

// A reading that is ahead is believed after an hour although the one before was further ahead, and what is in the log
// alone tells the time of a start, too.
func TestClockThatIsAheadTwice(t *testing.T) {
	cfg := diskConfig(t, t.TempDir())
	s := open(t, cfg)
	addHour(s, 12)
	require.NoError(t, s.Kill())
	s = open(t, cfg)
	ahead := noon.Add(20 * 24 * time.Hour)
	s.Maintain(ahead)
	require.Equal(t, 1, s.Stats().Profiles)
	for minute := range 62 {
		s.Maintain(ahead.Add(time.Duration(minute)*time.Minute - 4*24*time.Hour))
	}
	require.Zero(t, s.Stats().Profiles)
	require.NoError(t, s.Close())
}

// TestClockThatIsAhead of profiles in memory alone.
func TestClockThatIsAheadOfMemory(t *testing.T) {
	cfg := testConfig()
	cfg.Window = time.Hour
	s := New(cfg)
	for minute := range 40 {
		add(t, s, "a", "cpu", "nanoseconds", 60*minute, 1, profiletest.Value(1, "leaf"))
	}
	now := noon.Add(40 * time.Minute)
	for _, at := range []time.Duration{15 * 24 * time.Hour, 0, 15 * 24 * time.Hour, 15*24*time.Hour + 7*time.Minute, 0} {
		s.Maintain(now.Add(at))
		require.Equal(t, 40, s.Stats().Profiles)
	}
	for minute := range 80 {
		s.Maintain(now.Add(time.Duration(minute) * time.Minute))
	}
	require.Zero(t, s.Stats().Profiles)
	require.Equal(t, 40, s.Stats().Evicted[model.EvictedAge])
}

// A block of another version stays where it is: the program that wrote it reads it again. Its number is not used for
// another.
func TestBlockOfAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	s := open(t, diskConfig(t, dir))
	addHour(s, 0)
	s.Maintain(noon)
	block := s.Blocks()[0].Dir()
	require.NoError(t, s.Close())
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "wal")))
	index := filepath.Join(block, blockfile.IndexFile)
	b := profiletest.FileBytes(t, index)
	var object map[string]any
	require.NoError(t, blockfile.Unseal(b, &object))
	object["version"] = blockfile.Version + 1
	newer, err := blockfile.Seal(object)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(index, newer, 0o600))
	s = open(t, diskConfig(t, dir))
	assert.Zero(t, s.Stats().Damaged)
	assert.Empty(t, s.Blocks())
	addHour(s, 0)
	s.Maintain(noon)
	require.Len(t, s.Blocks(), 1)
	assert.NotEqual(t, block, s.Blocks()[0].Dir())
	require.NoError(t, s.Close())
	assert.FileExists(t, index)
	s = open(t, diskConfig(t, dir)) // the list still has it
	require.Len(t, s.Blocks(), 1)
	require.NoError(t, s.Close())
	assert.FileExists(t, index)
}

// A changed bit of an index is seen.
func TestChangedIndex(t *testing.T) {
	dir := t.TempDir()
	s := open(t, diskConfig(t, dir))
	addHour(s, 0)
	s.Maintain(noon)
	index := filepath.Join(s.Blocks()[0].Dir(), blockfile.IndexFile)
	require.NoError(t, s.Close())
	b := profiletest.FileBytes(t, index)
	for i := range b {
		b[i] ^= 1
		require.NoError(t, os.WriteFile(index, b, 0o600))
		_, err := blockfile.Open(filepath.Dir(index))
		assert.ErrorIs(t, err, blockfile.ErrDamaged, "byte %d", i)
		b[i] ^= 1
	}
	require.NoError(t, os.WriteFile(index, b, 0o600))
	_, err := blockfile.Open(filepath.Dir(index))
	require.NoError(t, err)
}

// A block is durable before it has its name, and the name before the head leaves the log.
func TestBlocksAreDurableBeforeTheirNames(t *testing.T) {
	cfg := diskConfig(t, t.TempDir())
	var mu sync.Mutex
	var uses []string
	blockfile.SetFault(func(op, path string) error {
		mu.Lock()
		defer mu.Unlock()
		uses = append(uses, op+" "+strings.TrimPrefix(path, cfg.Disk.Directory+"/"))
		return nil
	})
	s := open(t, cfg)
	addHour(s, 0)
	s.Maintain(noon)
	require.Len(t, s.Blocks(), 1)
	block := "blocks/" + s.Blocks()[0].Block
	require.NoError(t, s.Close())
	blockfile.SetFault(nil)
	renamed, listed, truncated := slices.Index(uses, "rename "+block), slices.Index(uses, "rename "+blocks.ManifestFile),
		slices.Index(uses, "remove wal")
	listed += 1 + slices.Index(uses[listed+1:], "rename "+blocks.ManifestFile) // the first is that of Open
	require.Positive(t, renamed)
	before := uses[:renamed]
	for _, name := range []string{
		"/samples.parquet", "/profiles.parquet", "/series.parquet", "/stacks.parquet", "/attributes.parquet",
		"/dictionaries.zst", "/index.json", "",
	} {
		assert.Contains(t, before, "sync "+block+blocks.Unfinished+name)
	}
	named := slices.Index(uses, "sync blocks")
	assert.Greater(t, named, renamed)
	assert.Greater(t, listed, named)
	assert.Equal(t,
		[]string{"write " + blocks.ManifestFile + blocks.Unfinished, "sync " + blocks.ManifestFile + blocks.Unfinished},
		uses[listed-2:listed])
	assert.Equal(t, "sync "+cfg.Disk.Directory, uses[listed+1])
	assert.Greater(t, truncated, listed)
}

// A dictionary is compared with its checksum, beside what zstd compares.
func TestChangedDictionary(t *testing.T) {
	s := open(t, diskConfig(t, t.TempDir()))
	addHour(s, 0)
	s.Maintain(noon)
	b := s.Blocks()[0]
	_, err := b.Dictionary(&b.Services[0])
	require.NoError(t, err)
	other := b.Services[0]
	other.Dictionary.CRC ^= 1
	_, err = b.Dictionary(&other)
	require.ErrorIs(t, err, blockfile.ErrDamaged)
	require.NoError(t, s.Close())
}

// Joining blocks ends when the store is stopped, and leaves everything as it was.
func TestJoiningCanBeStopped(t *testing.T) {
	dir := t.TempDir()
	s := open(t, diskConfig(t, dir))
	day := noon.Truncate(24 * time.Hour)
	keepHours(s, 3)
	ctx, stop := context.WithCancel(t.Context())
	blockfile.SetFault(func(op, path string) error {
		if op == "create" && strings.HasSuffix(path, "samples.parquet") {
			stop()
		}
		return nil
	})
	s.MaintainContext(ctx, day.Add(26*time.Hour))
	blockfile.SetFault(nil)
	require.Error(t, ctx.Err())
	assert.Len(t, s.Blocks(), 3)
	entries, err := os.ReadDir(filepath.Join(dir, "blocks"))
	require.NoError(t, err)
	assert.Len(t, entries, 3)
	s.Maintain(day.Add(26 * time.Hour))
	assert.Len(t, s.Blocks(), 1)
	assert.EqualValues(t, 3, sum(t, s, allOfShop))
	require.NoError(t, s.Close())
}

// Blocks become one only if the disk has room for it beside the log and the blocks that are full. Until then they stay,
// nothing is written, and it is tried again after a minute, two, four and so on, at last every hour.
func TestJoiningNeedsRoom(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	cfg := diskConfig(t, t.TempDir())
	var reports []string
	cfg.Disk.Report = func(message string, err error) { reports = append(reports, fmt.Sprint(message, ": ", err)) }
	s := open(t, cfg)
	day := noon.Truncate(24 * time.Hour)
	need := int64(0)
	for hour := range 3 {
		addHour(s, hour)
		s.Maintain(day.Add(time.Duration(hour+1) * time.Hour))
		need += s.Blocks()[hour].Bytes()
	}
	enough := need + need/8 + int64(cfg.MaxBytes)/diskBlocks
	free, asked := enough-1, 0
	s.disk.freeBytes = func(dir string) int64 {
		assert.Equal(t, cfg.Disk.Directory, dir)
		asked++
		return free
	}
	blockfile.SetFault(func(op, path string) error {
		if op == "create" {
			t.Error("without room, it creates " + path)
		}
		return nil
	})
	t.Cleanup(func() { blockfile.SetFault(nil) })
	now := day.Add(26 * time.Hour)
	maintained := s.Stats().Maintained
	for i, minutes := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		pause := time.Duration(minutes) * time.Minute
		s.Maintain(now)
		require.Equal(t, i+1, asked)
		s.Maintain(now.Add(pause - time.Second))
		require.Equal(t, i+1, asked, "before %s have passed", pause)
		now = now.Add(pause)
	}
	assert.Len(t, s.Blocks(), 3)
	assert.Equal(t, maintained, s.Stats().Maintained)
	require.Len(t, reports, 1)
	assert.Contains(t, reports[0], fmt.Sprintf("its blocks have %d bytes, and %d are free", need, free))
	blockfile.SetFault(nil)
	free = enough
	s.Maintain(now)
	assert.Len(t, s.Blocks(), 1)
	assert.Equal(t, now, s.Stats().Maintained)
	assert.EqualValues(t, 3, sum(t, s, allOfShop))
	assert.Equal(t, "the store joins blocks again: <nil>", reports[len(reports)-1])
	assert.Zero(t, s.disk.joinPause, "the next failure is followed by a minute again")
	require.NoError(t, s.Close())
}

// If it is not known whether the new list of blocks is durable, both the old blocks and the new one stay, and a kill
// loses nothing.
func TestKilledWhenTheListIsNotDurable(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	cfg := diskConfig(t, memoryDir(t))
	s := open(t, cfg)
	day := noon.Truncate(24 * time.Hour)
	keepHours(s, 3)
	failOn(t, "sync", filepath.Base(cfg.Disk.Directory), syscall.EIO) // it has been renamed
	s.Maintain(day.Add(26 * time.Hour))
	blockfile.SetFault(nil)
	require.Len(t, s.Blocks(), 3)
	killed := memoryDir(t)
	require.NoError(t, os.CopyFS(killed, os.DirFS(cfg.Disk.Directory)))
	s.Maintain(day.Add(28 * time.Hour))
	require.Len(t, s.Blocks(), 1)
	entries, err := os.ReadDir(filepath.Join(cfg.Disk.Directory, "blocks"))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "what the first attempt wrote is deleted")
	require.NoError(t, s.Close())
	cfg.Disk.Directory = killed
	s = open(t, cfg)
	assert.EqualValues(t, 3, sum(t, s, allOfShop))
	require.NoError(t, s.Close())
}

// A head that is read from the log since its block is damaged stays in the log until it is written again, and does not
// bring others back.
func TestBlockIsLostWhileTheLogHasIt(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	cfg, _ := threeHours(t)
	path := filepath.Join(cfg.Disk.Directory, blocks.Folder, "20261121T02-00000002", blockfile.IndexFile) // the last one
	require.NoError(t, os.Truncate(path, 10))
	for range 3 {
		s := open(t, cfg)
		require.EqualValues(t, 3, sum(t, s, allOfShop))
		require.Len(t, s.Blocks(), 2)
		require.NoError(t, s.Kill())
	}
	s := open(t, cfg)
	s.Maintain(noon)
	require.EqualValues(t, 3, sum(t, s, allOfShop))
	require.NoError(t, s.Close())
	s = open(t, cfg)
	require.EqualValues(t, 3, sum(t, s, allOfShop))
	require.NoError(t, s.Close())
}

// A log that could not be written begins again as soon as all that memory has is in blocks. It is durable before what
// it replaces goes, and a kill loses nothing.
func TestLogBeginsAgain(t *testing.T) {
	cfg := diskConfig(t, t.TempDir())
	s := open(t, cfg)
	push := func(i int) Added { return add(t, s, "a", "cpu", "nanoseconds", i, 1, profiletest.Value(1, "leaf")) }
	push(0)
	require.NoError(t, s.LogError())
	failOn(t, "write", logFolder, syscall.ENOSPC)
	for i := range 2 { // the log fails with the first one, and none is kept: the sender has them still
		require.ErrorIs(t, push(1+i).Err, syscall.ENOSPC)
		require.ErrorIs(t, s.LogError(), syscall.ENOSPC)
		require.Equal(t, 1+i, s.Stats().Refused[model.RefusedFull])
	}
	var mu sync.Mutex
	var uses []string
	blockfile.SetFault(func(op, path string) error {
		mu.Lock()
		defer mu.Unlock()
		if filepath.Base(path) == logFolder {
			uses = append(uses, op)
		}
		return nil
	})
	s.Maintain(noon.Add(time.Minute))
	blockfile.SetFault(nil)
	require.NoError(t, s.LogError())
	written, removed := slices.Index(uses, "write"), slices.Index(uses, "remove")
	require.True(t, 0 < written && written < removed, uses)
	syncs := slices.DeleteFunc(uses[written:removed], func(op string) bool { return op != "sync" })
	assert.GreaterOrEqual(t, len(syncs), 2, "of the log and of its name")
	push(3)
	require.NoError(t, s.Kill())
	s = open(t, cfg)
	assert.EqualValues(t, 2, sum(t, s, allOfShop))
	require.NoError(t, s.Close())
}

// A message that the log could not take is as if it had never come, whether its sender tries again or gives up: totals
// are compared with those before it, and states hold as long as without it.
func TestMessagesThatTheLogCannotTake(t *testing.T) {
	message := func(at time.Time, value int64) pprofile.Profiles {
		b := profiletest.New().Resource("service.name", "shop")
		for _, typ := range []string{"alloc_space", "inuse_space"} {
			b.Profile(typ, "bytes").Time(uint64(at.UnixNano()), 0).Sample(profiletest.Value(value, "leaf"))
		}
		return b.Build()
	}
	for _, comesAgain := range []bool{true, false} {
		stores := map[bool]*Store{}
		for _, fails := range []bool{false, true} {
			s := open(t, diskConfig(t, t.TempDir()))
			for i := range 6 {
				now := noon.Add(time.Duration(10*i) * time.Second)
				if fails && i == 4 {
					failOn(t, "write", "", syscall.EIO)
					require.ErrorIs(t, s.Add(message(now, 500), now).Err, syscall.EIO)
					require.Equal(t, 8, s.Stats().Profiles)
					blockfile.SetFault(nil)
					s.Maintain(now)
				}
				if i != 4 || comesAgain {
					require.Equal(t, 2, s.Add(message(now, int64(i+1)*100), now).Profiles)
				}
			}
			stores[fails] = s
		}
		for _, typ := range []string{"alloc_space", "inuse_space"} {
			for until := 10; until < 120; until += 10 {
				sel := model.Selection{Service: "shop", Profile: "memory", Type: typ, From: at(until - 10), Until: at(until)}
				assert.Equal(t, sum(t, stores[false], sel), sum(t, stores[true], sel), "%s until %d, comes again: %t", typ, until,
					comesAgain)
			}
		}
		for _, s := range stores {
			require.NoError(t, s.Close())
		}
	}
}

// The log has what is in memory, and little more.
func TestLogIsCut(t *testing.T) {
	cfg := diskConfig(t, memoryDir(t))
	s := open(t, cfg)
	for hour := range 5 {
		addHour(s, hour)
		s.Maintain(noon.Truncate(24 * time.Hour).Add(time.Duration(hour+1) * time.Hour))
		files, err := os.ReadDir(filepath.Join(cfg.Disk.Directory, logFolder))
		require.NoError(t, err)
		require.LessOrEqual(t, len(files), 2)
	}
	require.NoError(t, s.Close())
}

// lifeOfAStore adds profiles, writes them, makes one block of the hours, deletes nothing, and reads all. It returns how
// many profiles were in the log when they were added.
func lifeOfAStore(s *Store) (logged int, failed error) {
	day := noon.Truncate(24 * time.Hour)
	if err := s.Open(); err != nil {
		return 0, err
	}
	for hour := range 2 {
		if addHour(s, hour).Err == nil {
			logged++
		}
		s.Maintain(day.Add(time.Duration(hour+1) * time.Hour))
	}
	s.Maintain(day.Add(26 * time.Hour))
	_, err := s.FlameGraph(context.Background(), allOfShop, 100)
	s.Maintain(day.Add(27 * time.Hour))
	return logged, err
}

// Whichever use of the file system fails, for a moment or from then on, no profile is lost that was acknowledged, no
// intact block is set aside, and somebody hears of it.
func TestEveryUseOfTheDiskFails(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	faults := []error{syscall.EIO, syscall.EACCES, syscall.EMFILE, syscall.ENOSPC}
	for n := 1; failAt(t, n, faults[n%len(faults)], n/len(faults)%2 == 0); n++ {
	}
}

// memoryDir returns a folder that need not be synced to a disk, if there is one.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "store")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// failAt lets the n-th use of the file system fail, and those that follow if isLasting. It reports whether there was
// one.
func failAt(t *testing.T, n int, fault error, isLasting bool) bool {
	t.Helper()
	dir := memoryDir(t)
	var mu sync.Mutex
	var reports []string
	uses, failing := 0, ""
	cfg := diskConfig(t, dir)
	cfg.Disk.Report = func(message string, err error) {
		mu.Lock()
		defer mu.Unlock()
		reports = append(reports, fmt.Sprint(message, ": ", err))
	}
	blockfile.SetFault(func(op, path string) error {
		mu.Lock()
		defer mu.Unlock()
		uses++
		if uses < n || uses > n && !isLasting {
			return nil
		}
		if uses == n {
			failing = op + " " + path
		}
		return &fs.PathError{Op: op, Path: path, Err: fault}
	})
	s := New(cfg)
	logged, err := lifeOfAStore(s)
	killed := make(chan struct{})
	if s.disk != nil && s.disk.stop != nil {
		go func() { defer close(killed); _ = s.Kill() }()
		<-killed
	}
	blockfile.SetFault(nil)
	if failing == "" {
		return false
	}
	context := fmt.Sprintf("use %d: %s; %v; %v", n, failing, err, reports)
	require.True(t, err != nil || len(reports) > 0 || strings.HasPrefix(failing, "remove"), "nobody hears of it: %s",
		context)
	require.False(t, err != nil && errors.Is(err, blockfile.ErrDamaged), context)
	aside, _ := os.ReadDir(filepath.Join(dir, "damaged"))
	require.Empty(t, aside, context)
	cfg.Disk.Report = func(message string, err error) { t.Errorf("after use %d: %s: %v; %s", n, message, err, context) }
	s = open(t, cfg)
	if logged > 0 {
		got := sum(t, s, allOfShop)
		require.GreaterOrEqual(t, got, int64(logged), context)
		require.LessOrEqual(t, got, int64(2), context)
	}
	require.NoError(t, s.Close())
	return true
}

// A process that ends before any of its uses of the file system loses nothing, and doubles nothing.
func TestKilledBeforeEveryUseOfTheDisk(t *testing.T) {
	cfg := diskConfig(t, memoryDir(t))
	dir := cfg.Disk.Directory
	var copies []string
	added := []int64{}
	now := int64(0)
	var mu sync.Mutex
	blockfile.SetFault(func(op, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "read" || op == "open" || op == "stat" {
			return nil
		}
		to := memoryDir(t)
		if os.CopyFS(to, os.DirFS(dir)) == nil { // otherwise a file went meanwhile
			copies, added = append(copies, to), append(added, now)
		}
		return nil
	})
	s := open(t, cfg)
	day := noon.Truncate(24 * time.Hour)
	for hour := range 2 {
		addHour(s, hour)
		mu.Lock()
		now++
		mu.Unlock()
		s.Maintain(day.Add(time.Duration(hour+1) * time.Hour))
	}
	s.Maintain(day.Add(26 * time.Hour))
	require.Len(t, s.Blocks(), 1)
	require.NoError(t, s.Close())
	blockfile.SetFault(nil)
	require.Greater(t, len(copies), 50)
	for i, dir := range slices.All(copies) {
		cfg := diskConfig(t, dir)
		cfg.Disk.Report = func(message string, err error) { t.Errorf("copy %d: %s: %v", i, message, err) }
		s := open(t, cfg)
		got := int64(0)
		if g, err := s.FlameGraph(t.Context(), allOfShop, 100); err == nil {
			got = g.Total[0]
		}
		require.GreaterOrEqual(t, got, added[i], "copy %d", i)
		require.LessOrEqual(t, got, added[i]+1, "copy %d", i)
		require.NoError(t, s.Close())
	}
}
