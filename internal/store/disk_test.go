// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

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

// history sends profiles of all kinds to stores, with random values: some instances come and go, and some processes restart.
type history struct {
	rnd    *rand.Rand
	totals map[string]int64
}

func (h *history) send(now time.Time, stores ...*Store) {
	for _, service := range []string{"shop", "cart"} {
		for pod := range 3 {
			if h.rnd.IntN(10) == 0 {
				continue
			}
			id := fmt.Sprint(service, pod)
			if h.rnd.IntN(50) == 0 {
				clear(h.totals)
			}
			h.totals[id] += 1000 * h.rnd.Int64N(50)
			start := uint64(now.UnixNano())
			stack := func() profiletest.Sample {
				s := profiletest.Value(1000*h.rnd.Int64N(1000), fmt.Sprint("leaf", h.rnd.IntN(20)), service, "main")
				if h.rnd.IntN(3) == 0 {
					s = s.With(profiletest.Attr("endpoint", fmt.Sprint("/", h.rnd.IntN(3))))
				}
				if h.rnd.IntN(5) == 0 {
					s = s.Linked([16]byte{byte(h.rnd.IntN(3)), 1}, [8]byte{2})
				}
				return s
			}
			b := profiletest.New().Resource("service.name", service, "service.instance.id", fmt.Sprint(pod), "version", h.rnd.IntN(2)).
				Profile("cpu", "nanoseconds").Time(start, 10e9).Sample(stack(), stack(), stack()).
				Profile("inuse_space", "bytes").Time(start, 0).Sample(stack(), stack()).
				Profile("alloc_space", "bytes").Time(start, 0).Sample(profiletest.Value(h.totals[id], "leaf1", service, "main")).
				Profile("off_cpu", "nanoseconds").Time(start, 10e9).
				Sample(profiletest.Observed([]uint64{start + 1e9, start + 3e9}, "wait", "main").With(profiletest.Attr("thread.id", int64(h.rnd.IntN(2)))))
			pd := b.Build()
			for _, s := range stores {
				s.Add(pd, now.Add(10*time.Second))
			}
		}
	}
}

// answers are what a store returns to many queries, as text.
func answers(t testing.TB, s *Store, from, until int64) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintln(&out, s.services())
	for _, in := range s.profiles("") {
		in.Bytes = 0
		fmt.Fprintln(&out, in)
		for _, sel := range []Selection{
			{From: from, Until: until}, {From: from, Until: until, GroupBy: "endpoint"}, {From: from, Until: until, GroupBy: "version"},
			{From: from + 5e9, Until: until - 7e9, Attributes: []Attribute{{"endpoint", "/1"}}},
			{From: from, Until: until, LastState: true, Attributes: []Attribute{{"service.instance.id", "1"}}},
		} {
			sel.Service, sel.Profile, sel.Type = in.Service, in.Profile, in.Type.String()
			g, err := s.FlameGraph(t.Context(), sel, 1000)
			require.NoError(t, err)
			for i := range g.Frame {
				name := ""
				if i > 0 {
					name = g.Frames[g.Frame[i]].Name
				}
				fmt.Fprint(&out, name, " ", g.Self[i], " ", g.Total[i], "; ")
			}
			if sel.Attributes == nil { // that no profile has one of them is known for a block on disk alone
				fmt.Fprintln(&out, g.Summary)
			}
			tl, err := s.Timeline(t.Context(), sel, 50, noon.Add(48*time.Hour))
			require.NoError(t, err)
			for _, group := range tl.Groups {
				fmt.Fprintf(&out, "%s %.3f\n", group.Name, group.Values)
			}
			if sel.Attributes == nil {
				a, err := s.Attributes(t.Context(), sel, 100)
				require.NoError(t, err)
				fmt.Fprintln(&out, a)
			}
			merged, err := s.Merge(t.Context(), sel)
			require.NoError(t, err)
			require.NoError(t, profiletest.Check(merged.Profiles))
			fmt.Fprintln(&out, resolved(t, merged.Profiles))
			h, err := s.HeatMap(t.Context(), sel, 10, 10)
			require.NoError(t, err)
			fmt.Fprintln(&out, h)
		}
		e, err := s.Events(t.Context(), Selection{Service: in.Service, From: from, Until: until}, 1000)
		require.NoError(t, err)
		fmt.Fprintln(&out, e.Lanes, e.States, len(e.List))
	}
	return out.String()
}

// resolved returns a pprof's samples, sorted.
func resolved(t testing.TB, pd pprofile.Profiles) string {
	if pd.SampleCount() == 0 {
		return ""
	}
	var lines []string
	for _, sample := range encode(t, pd).Sample {
		var line strings.Builder
		for _, l := range sample.Location {
			for _, in := range l.Line {
				line.WriteString(in.Function.Name + " ")
			}
		}
		lines = append(lines, fmt.Sprint(line.String(), sample.Label, sample.NumLabel, sample.Value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// What a store on disk answers is what one in memory does, after restarts with and without a shutdown, and after blocks became days.
func TestDiskAnswersAsMemory(t *testing.T) {
	cfg := testConfig()
	cfg.Window = 100 * time.Hour
	inMemory := New(cfg)
	dir := t.TempDir()
	s := open(t, diskConfig(t, dir))
	h := &history{rnd: rand.New(rand.NewPCG(1, 2)), totals: map[string]int64{}}
	begun := noon.Add(-30 * time.Minute).Truncate(time.Hour)
	now := begun
	check := func(what string) {
		t.Helper()
		for _, span := range [][2]time.Duration{{0, 30 * time.Hour}, {50 * time.Minute, 130 * time.Minute}} {
			from, until := begun.Add(span[0]).UnixNano(), begun.Add(span[1]).UnixNano()
			require.Equal(t, answers(t, inMemory, from, until), answers(t, s, from, until), "%s, %v", what, span)
		}
	}
	for step := range 36 {
		for range 3 {
			h.send(now, inMemory, s)
			now = now.Add(20 * time.Minute)
		}
		switch step % 9 {
		case 2:
			s.Maintain(now)
		case 4: // as if it had been killed
			require.NoError(t, s.disk.lock.Release())
			s = open(t, diskConfig(t, dir))
		case 7:
			s.Maintain(now)
			require.NoError(t, s.Close())
			s = open(t, diskConfig(t, dir))
		}
		if step == 5 || step == 20 {
			check(fmt.Sprint("step ", step))
		}
	}
	s.Maintain(now)
	check("in the end")
	names, err := filepath.Glob(filepath.Join(dir, "blocks", begun.Format(dayLayout)+"*"))
	require.NoError(t, err)
	assert.Len(t, names, 1, "a day that is over is one block")
	assert.Zero(t, s.Stats().Damaged)
	require.NoError(t, s.Close())
}

// A directory is for one process.
func TestDirectoryIsLocked(t *testing.T) {
	dir := t.TempDir()
	s := open(t, diskConfig(t, dir))
	require.ErrorContains(t, New(diskConfig(t, dir)).Open(), "another process uses the store's directory "+dir)
	require.NoError(t, s.Close())
	s = open(t, diskConfig(t, dir))
	require.NoError(t, s.Close())
}

// A block whose files are not what was written is set aside, and the others serve.
func TestDamagedBlocks(t *testing.T) {
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
				paths, err := filepath.Glob(filepath.Join(dir, "blocks", "*", file))
				require.NoError(t, err)
				b, err := os.ReadFile(paths[1])
				require.NoError(t, err)
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
				assert.EqualValues(t, 2, sum(t, s, Selection{Service: "shop", Profile: "process_cpu"}))
				assert.EqualValues(t, 2, sum(t, s, Selection{Service: "shop", Profile: "process_cpu"}))
				aside, err := os.ReadDir(filepath.Join(dir, "damaged"))
				require.NoError(t, err)
				assert.Len(t, aside, 1)
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
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "*"))
	require.NoError(t, err)
	last := segments[len(segments)-1]
	info, err := os.Stat(last)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(last, info.Size()-5))
	s = open(t, diskConfig(t, dir))
	assert.EqualValues(t, 9, sum(t, s, Selection{Service: "shop", Profile: "process_cpu"}))
	assert.Equal(t, 1, s.Stats().Torn)
	add(t, s, "a", "cpu", "nanoseconds", 20, 1, profiletest.Value(1, "leaf"))
	require.NoError(t, s.disk.lock.Release())
	s = open(t, diskConfig(t, dir))
	assert.EqualValues(t, 10, sum(t, s, Selection{Service: "shop", Profile: "process_cpu"}))
	assert.Zero(t, s.Stats().Torn)
	require.NoError(t, s.Close())
}

// What is too old, or too much, is deleted and counted.
func TestRetention(t *testing.T) {
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
		require.Equal(t, sent, s.Stats().Profiles+s.Stats().Evicted[EvictedAge])
	}
	assert.Equal(t, 5, s.Stats().Profiles)
	s.disk.MaxBytes = s.Stats().DiskBytes - 1
	s.Maintain(now)
	assert.Equal(t, 4, s.Stats().Profiles)
	assert.Equal(t, 1, s.Stats().Evicted[EvictedBytes])
	names, err := os.ReadDir(filepath.Join(dir, "blocks"))
	require.NoError(t, err)
	assert.Len(t, names, 4)
	require.NoError(t, s.Close())
}

// Blocks that are full are written at once: those that wait do not fill the memory, and nothing is dropped.
func TestFullBlocksAreWrittenAtOnce(t *testing.T) {
	cfg := diskConfig(t, t.TempDir())
	cfg.MaxBytes = 8 << 20
	s := open(t, cfg)
	sent := 0
	for i := range 60 {
		b := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Time(uint64(at(i)), 1e9)
		for k := range 2000 {
			b.Sample(profiletest.Value(1, fmt.Sprint("function", i, "x", k)))
		}
		sent += s.Add(b.Build(), noon.Add(time.Duration(i)*time.Second)).Samples
		s.mu.Lock()
		assert.LessOrEqual(t, s.stats.Bytes, cfg.MaxBytes/2)
		s.mu.Unlock()
	}
	stats := s.Stats()
	assert.Greater(t, stats.DiskBlocks, 3)
	assert.Zero(t, stats.Evicted)
	assert.Equal(t, 120_000, sent)
	assert.EqualValues(t, sent, sum(t, s, Selection{Service: "shop", Profile: "process_cpu"}))
	require.NoError(t, s.Close())
}

// A process that ends after a block of a day was written and before those of its hours were deleted leaves both: each profile counts once.
// What is left of a head, some of whose blocks are gone for their age, stays.
func TestReplacedBlocks(t *testing.T) {
	dir := t.TempDir()
	cfg := diskConfig(t, dir)
	cfg.Disk.Downsampling = Downsampling{After: time.Hour, Step: time.Minute}
	s := open(t, cfg)
	h := &history{rnd: rand.New(rand.NewPCG(3, 3)), totals: map[string]int64{}}
	for i := range 20 {
		h.send(noon.Add(time.Duration(i)*10*time.Minute), s)
	}
	// A head of several hours.
	require.NoError(t, s.Close())
	cfg.Disk.Downsampling.After = 0
	s = open(t, cfg)
	s.Maintain(noon.Add(5 * time.Hour))
	hours, profiles := len(s.Blocks()), s.Stats().Profiles
	require.Greater(t, hours, 2)
	require.NoError(t, s.Close())
	kept := t.TempDir()
	blocks := filepath.Join(dir, "blocks")
	require.NoError(t, os.CopyFS(kept, os.DirFS(blocks)))
	restore := func() {
		require.NoError(t, os.CopyFS(blocks+"2", os.DirFS(kept)))
		entries, err := os.ReadDir(blocks + "2")
		require.NoError(t, err)
		for _, e := range entries {
			if _, err := os.Stat(filepath.Join(blocks, e.Name())); err != nil {
				require.NoError(t, os.Rename(filepath.Join(blocks+"2", e.Name()), filepath.Join(blocks, e.Name())))
			}
		}
		require.NoError(t, os.RemoveAll(blocks+"2"))
	}
	s = open(t, cfg)
	s.Maintain(noon.Add(40 * time.Hour))
	require.Len(t, s.Blocks(), 1)
	require.NoError(t, s.Close())
	restore()
	s = open(t, cfg)
	require.Len(t, s.Blocks(), 1, "those of the hours are deleted")
	require.Equal(t, profiles, s.Stats().Profiles)
	require.NoError(t, s.Close())
	require.NoError(t, os.CopyFS(kept, os.DirFS(blocks)))
	cfg.Disk.Downsampling.After = time.Hour
	s = open(t, cfg)
	s.Maintain(noon.Add(40 * time.Hour))
	require.Len(t, s.Blocks(), 1)
	require.NotZero(t, s.Blocks()[0].Step)
	coarse := s.Stats().Profiles
	require.NoError(t, s.Close())
	restore()
	s = open(t, cfg)
	require.Len(t, s.Blocks(), 1)
	require.NotZero(t, s.Blocks()[0].Step)
	require.Equal(t, coarse, s.Stats().Profiles)
	require.NoError(t, s.Close())
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
	var p Progress
	sel := Selection{Service: "shop", Profile: "process_cpu", From: at(0), Until: at(2 * 3600)}
	_, err := s.FlameGraph(WithProgress(t.Context(), &p), sel, 100)
	require.NoError(t, err)
	done, total := p.Blocks()
	require.Equal(t, []int64{blocks, blocks}, []int64{done, total}, "those of other times, too")
	require.NoError(t, s.Close())
}
