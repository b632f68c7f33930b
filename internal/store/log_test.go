// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blockfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/blocks"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// A byte of the log that the disk returns wrong, or a file that is missing, costs what is behind it in its block,
// not the blocks that begin in later files. The log goes on.
func TestDamagedLog(t *testing.T) {
	for _, fault := range []string{"none", "damaged", "missing"} {
		t.Run(fault, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, diskConfig(t, dir))
			s.disk.writing.Lock() // the blocks wait to be written
			push := func(s *Store, now time.Time) {
				refused := s.Add(cpu(now.Add(-time.Minute), 60, profiletest.Value(1, "leaf")), now).Refused
				require.Zero(t, refused)
			}
			for i := range 3 {
				for k := range 5 {
					push(s, noon.Add(time.Duration(i)*time.Hour+time.Duration(k+1)*time.Minute))
				}
			}
			require.Len(t, s.blocks, 3)
			require.NoError(t, s.disk.lock.Release()) // killed
			files := profiletest.Glob(t, filepath.Join(dir, "wal", "*"))
			switch fault {
			case "missing":
				require.NoError(t, os.Remove(files[1]))
			case "damaged":
				b := profiletest.FileBytes(t, files[1])
				b[len(b)/20] ^= 1
				require.NoError(t, os.WriteFile(files[1], b, 0o600))
			}
			cfg := diskConfig(t, dir)
			var reports []string
			cfg.Disk.Report = func(message string, err error) { reports = append(reports, fmt.Sprint(message, " ", err)) }
			again := open(t, cfg)
			got := sum(t, again,
				model.Selection{Service: "shop", Profile: "process_cpu", From: noon.Add(100 * time.Minute).UnixNano()})
			assert.Equal(t, fault != "none", len(reports) > 0, reports)
			assert.EqualValues(t, 5, got, "the third block, which has a file of its own")
			push(again, noon.Add(3*time.Hour))
			require.NoError(t, again.Close())
		})
	}
}

// A process that is killed while it begins a file of the log leaves an empty one, or one of a first record. The next
// one adds to the latter, and reports neither.
func TestKilledWhileAFileOfTheLogBegins(t *testing.T) {
	for name, begin := range map[string]func(*testing.T, *Store){
		"an empty file": func(t *testing.T, s *Store) {
			require.NoError(t, os.WriteFile(s.disk.log.Path(s.nextID), nil, 0o600))
		},
		"half a record": func(t *testing.T, s *Store) {
			require.NoError(t, os.WriteFile(s.disk.log.Path(s.nextID), []byte{9}, 0o600))
		},
		"a first record": func(_ *testing.T, s *Store) { s.beginBlock(noon.Add(time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := diskConfig(t, t.TempDir())
			var reports []string
			cfg.Disk.Report = func(message string, err error) { reports = append(reports, fmt.Sprint(message, " ", err)) }
			pushed, sel := 0, model.Selection{Service: "shop", Profile: "memory", Type: "alloc_space"}
			for start := range 4 {
				s := open(t, cfg)
				s.disk.writing.Lock() // the blocks wait to be written
				for range 2 {
					pushed++
					now := noon.Add(time.Duration(start)*time.Hour + time.Duration(pushed)*time.Second)
					p := profiletest.New().Resource("service.name", "shop").Profile("alloc_space", "bytes").
						Time(uint64(now.UnixNano()), 0).Sample(profiletest.Value(int64(pushed), "leaf", "main"))
					require.Zero(t, s.Add(p.Build(), now).Refused)
				}
				require.EqualValues(t, pushed-1, sum(t, s, sel))
				begin(t, s)
				s.disk.stop()
				require.NoError(t, s.disk.lock.Release()) // killed
			}
			for _, report := range reports {
				require.Contains(t, report, "torn")
			}
		})
	}
}

// A file of the log that was cut since its block is on disk is not reported as missing, also without the list that
// tells so.
func TestCutLogWithoutTheListOfBlocks(t *testing.T) {
	cfg := diskConfig(t, t.TempDir())
	var reports []string
	cfg.Disk.Report = func(message string, err error) { reports = append(reports, fmt.Sprint(message, " ", err)) }
	s := open(t, cfg)
	s.disk.writing.Lock()
	addHour(s, 0)
	addHour(s, 1)
	s.disk.writing.Unlock()
	require.NoError(t, s.flush())
	require.NoError(t, s.Close())
	require.NoError(t, os.Remove(filepath.Join(cfg.Disk.Directory, blocks.ManifestFile)))
	s = open(t, cfg)
	assert.EqualValues(t, 2, sum(t, s, allOfShop))
	assert.Len(t, reports, 1, "that of the list: %v", reports)
	require.NoError(t, s.Close())
}

// Whoever cannot open a store closes it, too, without another error.
func TestCloseAfterAFailedOpen(t *testing.T) {
	cfg := diskConfig(t, t.TempDir())
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Disk.Directory, logFolder), nil, 0o600))
	s := New(cfg)
	require.ErrorContains(t, s.Open(), "not a directory")
	require.NoError(t, s.Close())
}

// The log is synced every second, also while a day becomes one block.
func TestLogIsSyncedWhileBlocksAreWritten(t *testing.T) {
	for _, compacting := range []bool{false, true} {
		t.Run(fmt.Sprint("compacting: ", compacting), func(t *testing.T) {
			s := open(t, diskConfig(t, t.TempDir()))
			push := func(now time.Time) {
				s.Add(cpu(now, 1, profiletest.Value(1, "leaf")), now.Add(time.Second))
			}
			push(noon)
			if compacting {
				s.disk.writing.Lock() // as compact does, for as long as it takes
			}
			push(noon.Add(time.Hour)) // the next hour begins: its block is to be written
			push(noon.Add(time.Hour + time.Second))
			failOn(t, "sync", logFolder, syscall.EIO)
			assert.Eventually(t, func() bool { return s.LogError() != nil }, 20*time.Second, 10*time.Millisecond,
				"the log was not synced")
			if compacting {
				s.disk.writing.Unlock()
			}
			_ = s.Close()
		})
	}
}

// The log of a process that was killed can have more than its successor may keep in memory, if that was made smaller.
// Nothing is lost; what is too much goes to disk.
func TestSmallerMemoryAfterAKill(t *testing.T) {
	profiletest.SkipLarge(t)
	cfg := diskConfig(t, t.TempDir())
	cfg.MaxBytes = 16 << 20
	s := open(t, cfg)
	failOn(t, "mkdir", "", syscall.ENOSPC) // heads stay in memory and in the log
	n := 0
	push := func() {
		samples := make([]profiletest.Sample, 50)
		for i := range samples {
			samples[i] = profiletest.Value(1, fmt.Sprint("leaf", n, i), "main")
		}
		add(t, s, "a", "cpu", "nanoseconds", 2*n, 1, samples...)
		n++
	}
	for s.Stats().Bytes < 5<<20 {
		push()
	}
	all := func() int64 { return sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}) }
	require.EqualValues(t, 50*n, all())
	require.Empty(t, s.Blocks())
	require.NoError(t, s.Kill())
	cfg.MaxBytes = 1 << 20
	s = open(t, cfg)
	s.Maintain(noon.Add(12 * time.Hour))
	assert.EqualValues(t, 50*n, all(), "while the disk is full")
	blockfile.SetFault(nil)
	s.Maintain(noon.Add(12 * time.Hour))
	for range 10 {
		push()
	}
	s.Maintain(noon.Add(12 * time.Hour))
	assert.EqualValues(t, 50*n, all(), "when more has come")
	assert.Less(t, s.Stats().Bytes, cfg.MaxBytes)
	assert.Zero(t, s.Stats().Evicted)
	require.NoError(t, s.Close())
}

// A kill between the blocks of a head that has late profiles neither loses nor doubles anything: the log has all of it.
func TestKilledBetweenBlocksOfAHead(t *testing.T) {
	for missing := range 3 {
		dir := t.TempDir()
		s := open(t, diskConfig(t, dir))
		for _, hour := range []int{10, 5, 0} { // two of them are late
			start := noon.Add(time.Duration(hour) * time.Hour)
			s.Add(cpu(start, 10, profiletest.Value(int64(hour+1), "leaf")), noon.Add(10*time.Hour+time.Minute))
		}
		wal := t.TempDir()
		s.adding.Lock()
		require.NoError(t, os.CopyFS(wal, os.DirFS(filepath.Join(dir, "wal"))))
		s.adding.Unlock()
		s.Maintain(noon.Add(12 * time.Hour))
		blocks := s.Blocks()
		require.Len(t, blocks, 3)
		require.NoError(t, s.Close())
		require.NoError(t, os.RemoveAll(blocks[missing].Dir())) // it had no name yet
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "wal")))
		require.NoError(t, os.CopyFS(filepath.Join(dir, "wal"), os.DirFS(wal)))
		s = open(t, diskConfig(t, dir))
		assert.EqualValues(t, 18, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}), "without block %d",
			missing)
		s.Maintain(noon.Add(13 * time.Hour))
		assert.EqualValues(t, 18, sum(t, s, model.Selection{Service: "shop", Profile: "process_cpu"}), "written again")
		require.NoError(t, s.Close())
	}
}

// A query that has begun reads its blocks to the end, although they become one meanwhile; then their files go.
func TestQueryKeepsItsBlocks(t *testing.T) {
	dir := t.TempDir()
	s := open(t, diskConfig(t, dir))
	day := noon.Truncate(24 * time.Hour)
	for hour := range 3 {
		start := day.Add(time.Duration(hour) * time.Hour)
		s.Add(cpu(start, 10, profiletest.Value(1, "leaf")), start.Add(10*time.Second))
		s.Maintain(start.Add(time.Hour))
	}
	require.Len(t, s.Blocks(), 3)
	q := &answers.Query{Selection: model.Selection{Service: "shop", Profile: "process_cpu"},
		Want: answers.Want{Stacks: true}, Memory: model.NewMemory(t.Context(), nil)}
	selected, err := s.Select(t.Context(), q)
	require.NoError(t, err)
	s.Maintain(day.Add(26 * time.Hour)) // they become one
	require.Len(t, s.Blocks(), 1)
	total := int64(0)
	require.NoError(t, selected.Read(func(samples *answers.Samples) error {
		for _, v := range samples.Values {
			total += v
		}
		return nil
	}))
	assert.EqualValues(t, 3, total)
	selected.Close()
	names, err := os.ReadDir(filepath.Join(dir, "blocks"))
	require.NoError(t, err)
	assert.Len(t, names, 1)
	require.NoError(t, s.Close())
}
