// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func diskConfig(t testing.TB, dir string) Config {
	cfg := testConfig()
	cfg.Disk = DiskConfig{
		Directory: dir, Retention: 14 * 24 * time.Hour, MaxBytes: 1 << 30,
		Report: func(message string, err error) { t.Log(message, err) },
	}
	return cfg
}

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	s := New(cfg)
	require.NoError(t, s.Open())
	return s
}

// A directory is for one process.
func TestDirectoryIsLocked(t *testing.T) {
	dir := t.TempDir()
	s := open(t, diskConfig(t, dir))
	require.ErrorContains(t, New(diskConfig(t, dir)).Open(), "another process uses the store's directory "+dir)
	require.NoError(t, s.Close())
	s = open(t, diskConfig(t, dir))
	require.NoError(t, s.Close())
	// What cannot be opened is not in use.
	require.NoError(t, os.Remove(filepath.Join(dir, "LOCK")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "LOCK"), 0o750))
	err := New(diskConfig(t, dir)).Open()
	require.ErrorContains(t, err, "lock the store's directory: ")
	require.NotContains(t, err.Error(), "another process")
}

// A block whose files are not what was written is set aside, and the others serve.
func TestDamagedBlocks(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	for _, file := range []string{"index.json", "samples.parquet", "profiles.parquet", "dictionaries.zst"} {
		for _, how := range []string{"cut", "changed", "removed"} {
			t.Run(file+" "+how, func(t *testing.T) {
				dir := t.TempDir()
				s := open(t, diskConfig(t, dir))
				now := noon
				for range 3 {
					add(t, s, "a", "cpu", "nanoseconds", int(now.Sub(noon)/time.Second), 10, profiletest.Value(1, "leaf"))
					now = now.Add(time.Hour)
				}
				s.Maintain(now)
				require.Equal(t, 3, s.Stats().DiskBlocks)
				require.NoError(t, s.Close())
				paths := profiletest.Glob(t, filepath.Join(dir, "blocks", "*", file))
				b := profiletest.FileBytes(t, paths[1])
				switch how {
				case "cut":
					b = b[:len(b)/2]
				case "changed":
					for i := range b {
						b[i] ^= 0x55
					}
				}
				require.NoError(t, os.WriteFile(paths[1], b, 0o600))
				if how == "removed" {
					require.NoError(t, os.Remove(paths[1]))
				}
				s = open(t, diskConfig(t, dir))
				assert.EqualValues(t, 2, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
				assert.EqualValues(t, 2, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
				aside, err := os.ReadDir(filepath.Join(dir, "damaged"))
				require.NoError(t, err)
				assert.Len(t, aside, 1)
				files, _ := os.ReadDir("/proc/self/fd") // elsewhere there is none
				for _, fd := range files {
					target, _ := os.Readlink(filepath.Join("/proc/self/fd", fd.Name()))
					assert.NotContains(t, target, filepath.Join(dir, "damaged"), "its files are closed")
				}
				require.NoError(t, s.Close())
			})
		}
	}
}

// A log that ends within a record is cut there.
func TestTornLog(t *testing.T) {
	dir := t.TempDir()
	s := open(t, diskConfig(t, dir))
	for i := range 10 {
		add(t, s, "a", "cpu", "nanoseconds", i, 1, profiletest.Value(1, "leaf"))
	}
	require.NoError(t, s.disk.lock.Release())
	files := profiletest.Glob(t, filepath.Join(dir, "wal", "*"))
	last := files[len(files)-1]
	info, err := os.Stat(last)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(last, info.Size()-5))
	s = open(t, diskConfig(t, dir))
	assert.EqualValues(t, 9, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
	assert.Equal(t, 1, s.Stats().Torn)
	add(t, s, "a", "cpu", "nanoseconds", 20, 1, profiletest.Value(1, "leaf"))
	require.NoError(t, s.disk.lock.Release())
	s = open(t, diskConfig(t, dir))
	assert.EqualValues(t, 10, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
	assert.Zero(t, s.Stats().Torn)
	require.NoError(t, s.Close())
}

// What is too old, or too much, is deleted and counted.
func TestRetention(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	dir := t.TempDir()
	cfg := diskConfig(t, dir)
	cfg.Disk.Retention = 5 * time.Hour
	s := open(t, cfg)
	now := noon
	sent := 0
	for range 12 {
		add(t, s, "a", "cpu", "nanoseconds", int(now.Sub(noon)/time.Second), 10, profiletest.Value(1, "leaf"))
		sent++
		now = now.Add(time.Hour)
		s.Maintain(now)
		require.Equal(t, sent, s.Stats().Profiles+s.Stats().Evicted[model.EvictedAge])
	}
	assert.Equal(t, 5, s.Stats().Profiles)
	s.disk.MaxBytes = s.Stats().DiskBytes - 1
	s.Maintain(now)
	assert.Equal(t, 4, s.Stats().Profiles)
	assert.Equal(t, 1, s.Stats().Evicted[model.EvictedBytes])
	names, err := os.ReadDir(filepath.Join(dir, "blocks"))
	require.NoError(t, err)
	assert.Len(t, names, 4)
	require.NoError(t, s.Close())
}

// Blocks that are full are written at once: those that wait do not fill the memory, and nothing is dropped.
func TestFullBlocksAreWrittenAtOnce(t *testing.T) {
	cfg := diskConfig(t, t.TempDir())
	cfg.MaxBytes = 4 << 20
	s := open(t, cfg)
	sent := 0
	for i := range 30 {
		b := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(at(i)), 1e9)
		for k := range 2000 {
			b.Sample(profiletest.Value(1, fmt.Sprint("function", i, "x", k)))
		}
		sent += s.Add(b.Build(), noon.Add(time.Duration(i)*time.Second)).Samples
		s.mu.Lock()
		assert.LessOrEqual(t, s.stats.Bytes, cfg.MaxBytes*11/16)
		s.mu.Unlock()
	}
	stats := s.Stats()
	assert.Greater(t, stats.DiskBlocks, 3)
	assert.Zero(t, stats.Evicted)
	assert.Equal(t, 60_000, sent)
	assert.EqualValues(t, sent, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
	require.NoError(t, s.Close())
}

// Large messages wait until what is in memory has been written. Small ones do not wait for them.
func TestLargeMessagesDoNotDelaySmallOnes(t *testing.T) {
	cfg := diskConfig(t, t.TempDir())
	cfg.MaxBytes = 4 << 20
	s := open(t, cfg)
	message := func(frames int) pprofile.Profiles {
		stack := make([]string, frames)
		return profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(at(0)), 1e9).
			Sample(profiletest.Value(1, stack...)).Build()
	}
	s.disk.writing.Lock() // no block can be written
	const largeMessages, smallMessages = 4, 20
	s.Add(message(200_000), noon) // fills a block
	var large sync.WaitGroup
	for i := range largeMessages - 1 {
		pd := message(200_001 + i)
		large.Go(func() { s.Add(pd, noon) })
	}
	added := make(chan struct{})
	go func() {
		defer close(added)
		for i := range smallMessages {
			s.Add(message(i), noon)
		}
	}()
	select {
	case <-added:
	case <-time.After(20 * time.Second):
		t.Error("small messages wait for large ones")
	}
	s.adding.Lock()
	assert.Less(t, s.stats.Profiles, largeMessages+smallMessages, "some large messages wait")
	s.adding.Unlock()
	s.disk.writing.Unlock()
	large.Wait()
	<-added
	assert.EqualValues(t, largeMessages+smallMessages, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
	require.NoError(t, s.Close())
}

// A small message that comes after several large ones waits for one of them at most.
func TestSmallMessagesPassLargeOnes(t *testing.T) {
	cfg := testConfig()
	cfg.MaxBytes = 16 << 20
	s := New(cfg)
	const largeMessages = 6
	message := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(at(0)), 1e9).
		Sample(profiletest.Value(1, make([]string, 300_000)...)).Build()
	var large sync.WaitGroup
	var added atomic.Int64
	s.adding.Lock()
	for range largeMessages {
		large.Go(func() { s.Add(message, noon); added.Add(1) })
	}
	time.Sleep(50 * time.Millisecond) // they come first
	small := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(at(0)), 1e9).
		Sample(profiletest.Value(1, "f")).Build()
	done := make(chan int64)
	go func() { s.Add(small, noon); done <- added.Load() }()
	time.Sleep(50 * time.Millisecond)
	s.adding.Unlock()
	assert.LessOrEqual(t, <-done, int64(2), "large messages that came before")
	large.Wait()
}

// A head that became several blocks stays readable when some of them have been deleted for their age.
func TestPartOfAHead(t *testing.T) {
	cfg := diskConfig(t, t.TempDir())
	s := open(t, cfg)
	for _, hour := range []int{10, 5, 0} { // two of them are late
		add(t, s, "0", "cpu", "nanoseconds", hour*3600, 10, profiletest.Value(int64(hour+1), "leaf"))
	}
	now := noon.Add(12 * time.Hour)
	s.Maintain(now)
	require.Len(t, s.Blocks(), 3)
	s.disk.Retention = 9 * time.Hour
	s.Maintain(now)
	require.Len(t, s.Blocks(), 2)
	require.NoError(t, s.Close())
	s = open(t, cfg)
	require.Len(t, s.Blocks(), 2)
	require.NoError(t, s.Close())
}

// A query reports the blocks that it has read.
func TestProgress(t *testing.T) {
	s := open(t, diskConfig(t, t.TempDir()))
	for hour := range 4 {
		add(t, s, "0", "cpu", "nanoseconds", hour*3600, 10, profiletest.Value(1, "leaf"))
		s.Maintain(noon.Add(time.Duration(hour+1) * time.Hour))
	}
	blocks := int64(len(s.Blocks()))
	require.Positive(t, blocks)
	var p model.Progress
	sel := model.Selection{Service: "shop", Profile: "process_cpu", From: at(0), Until: at(2 * 3600)}
	_, err := s.FlameGraph(model.WithProgress(t.Context(), &p), sel, 100)
	require.NoError(t, err)
	done, total := p.Blocks()
	require.Equal(t, []int64{blocks, blocks}, []int64{done, total}, "those of other times, too")
	require.NoError(t, s.Close())
}

// A late profile does not let its whole day be written again: blocks join a day when there is enough of them.
func TestLateProfilesDoNotRewriteADay(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	s := open(t, diskConfig(t, t.TempDir()))
	push := func(i, functions int) {
		b := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(at(i)), 1e9)
		for k := range functions {
			b.Sample(profiletest.Value(1, fmt.Sprint("function", i, "x", k)))
		}
		require.Equal(t, functions, s.Add(b.Build(), noon.Add(24*time.Hour)).Samples)
	}
	now := noon.Add(24 * time.Hour)
	maintain := func() []string {
		now = now.Add(time.Hour)
		s.Maintain(now)
		s.Maintain(now)
		var names []string
		for _, b := range s.Blocks() {
			names = append(names, filepath.Base(b.Dir()))
		}
		return names
	}
	push(0, 3999)
	push(3*3600, 1)
	day := maintain()
	require.Len(t, day, 1, "hours of any size become a day")
	push(10, 1)
	late := maintain()
	require.Len(t, late, 2)
	assert.Contains(t, late, day[0], "the day is as it was")
	push(20, 2000)
	assert.Len(t, maintain(), 1)
	assert.EqualValues(t, 6001, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}))
	require.NoError(t, s.Close())
}

// The blocks of a quarter of a day become one while the day goes on, and a kill at that time neither loses nor doubles
// anything: heads may have late profiles of other quarters, of which only theirs are in the new block.
func TestKilledWhileJoining(t *testing.T) {
	profiletest.SkipLarge(t) // one goroutine
	seeds, hours := []uint64{0, 2}, 27
	if profiletest.IsRace { // everything takes minutes
		seeds, hours = seeds[1:], 14
	}
	for _, seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 31))
		cfg := diskConfig(t, t.TempDir())
		cfg.Disk.Report = func(message string, err error) { t.Errorf("%s: %v", message, err) }
		s := open(t, cfg)
		day := noon.Truncate(24 * time.Hour)
		all := model.Selection{Service: "shop", Profile: "process_cpu", From: day.UnixNano(),
			Until: day.Add(48 * time.Hour).UnixNano()}
		want, most := int64(0), 0
		for hour := range hours {
			now := day.Add(time.Duration(hour) * time.Hour)
			push := func(start time.Time) {
				b := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(start.UnixNano()),
					1e9)
				value := 1 + rnd.Int64N(1<<40)
				want += value
				require.Equal(t, 1, s.Add(b.Sample(profiletest.Value(value, fmt.Sprint("leaf", rnd.IntN(5)))).Build(), now).Samples)
			}
			push(now)
			for range rnd.IntN(3) * int(seed) { // late
				push(day.Add(time.Duration(rnd.IntN(hour+1)) * time.Hour))
			}
			now = now.Add(time.Hour)
			freeze(s)
			require.NoError(t, s.flush())
			before, after := filepath.Join(cfg.Disk.Directory, "blocks"), t.TempDir()
			require.NoError(t, os.CopyFS(after, os.DirFS(before)))
			s.Maintain(now)
			blocks := len(s.Blocks())
			most = max(most, blocks)
			require.Equal(t, want, sum(t, s, all), "hour %d", hour)
			// As if it had been killed before it deleted what was joined, or a part of that.
			old, err := os.ReadDir(after)
			require.NoError(t, err)
			for _, entry := range old {
				if rnd.IntN(4) > 0 {
					_ = os.CopyFS(filepath.Join(before, entry.Name()), os.DirFS(filepath.Join(after, entry.Name())))
				}
			}
			reader := cfg
			reader.Disk.ReadOnly = true
			for _, cfg := range []Config{reader, cfg} {
				require.NoError(t, s.Close())
				s = open(t, cfg)
				require.Equal(t, want, sum(t, s, all), "hour %d", hour)
				require.Len(t, s.Blocks(), blocks)
			}
		}
		if seed == 0 { // nothing was late: three quarters, six hours, and an hour of the next day
			require.Equal(t, 10, most)
		}
		require.Less(t, len(s.Blocks()), 24)
		require.NoError(t, s.Close())
	}
}

// Maintained stays behind while blocks cannot be written.
func TestMaintainedAfterWhatWasDue(t *testing.T) {
	dir := t.TempDir()
	s := open(t, diskConfig(t, dir))
	s.Maintain(noon)
	require.Equal(t, noon, s.Stats().Maintained)

	add(t, s, "a", "cpu", "nanoseconds", 0, 10, profiletest.Value(1, "leaf"))
	blocks := filepath.Join(dir, "blocks")
	require.NoError(t, os.RemoveAll(blocks))
	require.NoError(t, os.WriteFile(blocks, nil, 0o600))
	s.Maintain(noon.Add(2 * time.Hour))
	require.Equal(t, noon, s.Stats().Maintained)

	require.NoError(t, os.Remove(blocks))
	require.NoError(t, os.Mkdir(blocks, 0o700))
	s.Maintain(noon.Add(3 * time.Hour))
	require.Equal(t, noon.Add(3*time.Hour), s.Stats().Maintained)
	require.NoError(t, s.Close())
}

// The profiles of a series are in the order of their start in a block, in whatever order they arrived.
func TestBlocksAreInTheOrderOfTime(t *testing.T) {
	s := open(t, diskConfig(t, memoryDir(t)))
	for _, second := range []int{50, 10, 30} {
		add(t, s, "a", "cpu", "nanoseconds", second, 1, profiletest.Value(1, "leaf"))
	}
	s.Maintain(noon.Add(time.Hour))
	scan := s.Blocks()[0].Scan()
	defer scan.Close()
	starts := make([]int64, 3)
	require.NoError(t, scan.ProfileStarts(0, starts))
	assert.Equal(t, []int64{at(10), at(30), at(50)}, starts)
	require.NoError(t, s.Close())
}
