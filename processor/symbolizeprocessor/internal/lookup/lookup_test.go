// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"debug/elf"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/programtest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

// The cache stays below its bytes, and keeps what is used.
func TestCacheIsBounded(t *testing.T) {
	const maxBytes = 1 << 20
	c := newCache(maxBytes)
	name := strings.Repeat("x", 500)
	hot := key{module: 1, address: symbols.Position{Offset: 1}}
	c.put(hot, &Answer{Frames: []symbols.Frame{{Name: name}}})
	for i := range uint64(100_000) {
		c.put(key{module: 2, address: symbols.Position{Offset: i}}, &Answer{Frames: []symbols.Frame{{Name: name}}})
		if i%8 == 0 {
			require.NotNil(t, c.get(hot), "after %d others", i)
		}
	}
	entries, bytes := c.size()
	assert.LessOrEqual(t, bytes, int64(maxBytes))
	assert.Greater(t, entries, int64(500))
	c.put(hot, &Answer{Frames: []symbols.Frame{{Name: strings.Repeat("y", maxBytes)}}})
	assert.Equal(t, name, c.get(hot).Frames[0].Name, "what does not fit is not kept")
	c.put(hot, &Answer{Missing: NoSymbol})
	assert.Empty(t, c.get(hot).Frames)
}

// However often the others are used, what was found last can be read.
func TestCacheAdmitsWhatIsNew(t *testing.T) {
	c := newCache(1 << 20)
	at := func(module, i uint64) key { return key{module: module, address: symbols.Position{Offset: i}} }
	for i := range uint64(10_000) {
		c.put(at(1, i), &Answer{})
	}
	for range 10 {
		for i := range uint64(10_000) {
			c.get(at(1, i))
		}
	}
	for i := range uint64(1000) {
		c.put(at(2, i), &Answer{})
	}
	for i := range uint64(1000) {
		require.NotNil(t, c.get(at(2, i)), i)
	}
}

func idsOf(t *testing.T, name string) symbols.IDs {
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	image, err := symbols.Open(f, info.Size(), symbols.DefaultLimits)
	require.NoError(t, err)
	return image.IDs()
}

// request requests addresses until they are known or reported missing.
func request(t *testing.T, r *Resolver, m *Module, at ...symbols.Position) (answers []*Answer, why Reason) {
	t.Helper()
	for range 3 {
		answers = nil
		for _, a := range at {
			if answer := r.Lookup(m, a); answer != nil {
				answers = append(answers, answer)
			}
		}
		if len(answers) == len(at) {
			return answers, answers[0].Missing
		}
		reason, finished := r.Request(m, at, nil)
		if finished == nil {
			return answers, reason
		}
		select {
		case <-finished:
		case <-time.After(30 * time.Second):
			t.Fatal("the search does not end")
		}
	}
	return answers, Pending
}

// What was not found is searched again after the interval, and not before.
func TestMissingFilesAreSearchedAgain(t *testing.T) {
	program := programtest.Compile(t, "gcc", "shop.c", "-O1")
	ids := idsOf(t, program)
	there := filepath.Join(t.TempDir(), "program")
	r := newResolver(t, func(c *Config, _ *sources.Config) { c.RetryInterval = 200 * time.Millisecond })
	m := r.Module(Key{IDs: ids}, there)
	at := symbols.Position{Offset: 0x1100, MappingOffset: 0x1000}
	_, why := request(t, r, m, at)
	assert.Equal(t, NotFound, why)
	missing, isMissing := r.Missing(m)
	assert.True(t, isMissing)
	assert.Equal(t, NotFound, missing)
	require.NoError(t, os.Rename(program, there))
	assert.Eventually(t, func() bool {
		answers, _ := request(t, r, m, at)
		return len(answers) == 1 && len(answers[0].Frames) > 0
	}, 30*time.Second, 20*time.Millisecond)
}

// A file of another build is not used, and one without the address is only searched again later.
func TestReasons(t *testing.T) {
	program := programtest.Compile(t, "gcc", "shop.c", "-O1")
	ids := idsOf(t, program)
	garbage := filepath.Join(t.TempDir(), "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte(strings.Repeat("garbage ", 100)), 0o600))
	cut := filepath.Join(t.TempDir(), "cut")
	b := profiletest.FileBytes(t, program)
	require.NoError(t, os.WriteFile(cut, b[:100], 0o600))
	at := symbols.Position{Offset: 0x1100}
	for _, test := range []struct {
		name     string
		ids      symbols.IDs
		path     string
		at       symbols.Position
		expected Reason
	}{
		{"nowhere", ids, "/nowhere", at, NotFound},
		{"a name alone", ids, "program", at, NotFound},
		{"a folder", ids, t.TempDir(), at, Unavailable},
		{"another build", symbols.IDs{GNU: strings.Repeat("ab", 20)}, program, at, Mismatch},
		{"not ELF", ids, garbage, at, Malformed},
		{"cut", ids, cut, at, Malformed},
		{"no build id", symbols.IDs{}, program, at, NoBuildID},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newResolver(t, nil)
			m := r.Module(Key{IDs: test.ids, Path: test.path}, test.path)
			_, why := request(t, r, m, test.at)
			assert.Equal(t, test.expected, why)
		})
	}
	r := newResolver(t, nil)
	m := r.Module(Key{IDs: ids}, program)
	answers, _ := request(t, r, m, symbols.Position{Offset: 1 << 40}, symbols.Position{Offset: 0, Virtual: true})
	require.Len(t, answers, 2)
	assert.Equal(t, []Reason{NoSymbol, NoSymbol}, []Reason{answers[0].Missing, answers[1].Missing})
	_, isMissing := r.Missing(m)
	assert.False(t, isMissing, "other addresses of the file may be known")
}

// A sender can name any number of files and addresses: those that wait and those that are remembered are bounded.
func TestRequestsAreBounded(t *testing.T) {
	r := newResolver(t, func(c *Config, _ *sources.Config) {
		c.Workers, c.QueueSize, c.MaxModules, c.MaxPendingAddresses = 0, 4, 10, 100
	})
	counts := map[Reason]int{}
	for i := range 1000 {
		m := r.Module(Key{IDs: symbols.IDs{GNU: fmt.Sprint(i)}}, "file")
		var at []symbols.Position
		for k := range uint64(1000) {
			at = append(at, symbols.Position{Offset: k})
		}
		for range 3 {
			why, _ := r.Request(m, at, []int64{1, 2, 3, 4, 5, 6, 7, 8})
			counts[why]++
		}
		assert.LessOrEqual(t, len(m.wanted), 100)
		assert.LessOrEqual(t, len(m.pids), 4)
	}
	assert.Equal(t, map[Reason]int{Pending: 4, QueueFull: 2996}, counts)
	sizes := r.Sizes()
	assert.Equal(t, int64(10), sizes.Modules)
	assert.Equal(t, int64(4), sizes.Queued)
}

// A module's texts can be parts of a message, which is not kept for them.
func TestModulesKeepNoMessages(t *testing.T) {
	r := newResolver(t, nil)
	before := profiletest.HeapBytes()
	text := func(i int) string { return strings.Repeat(fmt.Sprintf("/%039d", i), 1<<15)[:40] }
	for i := range 50 {
		r.Module(Key{IDs: symbols.IDs{GNU: text(i), Go: text(i), Htlhash: text(i)}, Path: text(i)}, text(i))
	}
	assert.Less(t, profiletest.HeapBytes(), before+5<<20)
	assert.Equal(t, int64(50), r.Sizes().Modules)
}

// Files are closed when too many are open, when they are not used, and at the end.
func TestOpenFilesAreBounded(t *testing.T) {
	program := programtest.Compile(t, "gcc", "shop.c", "-O1")
	b := profiletest.FileBytes(t, program)
	r := newResolver(t, func(c *Config, _ *sources.Config) { c.MaxOpenFiles = 2; c.KeepOpen = 300 * time.Millisecond })
	for i := range 5 {
		copied := filepath.Join(t.TempDir(), "program")
		require.NoError(t, os.WriteFile(copied, append(b, byte(i)), 0o600))
		m := r.Module(Key{IDs: idsOf(t, program), Path: copied}, copied)
		answers, _ := request(t, r, m, symbols.Position{Offset: 0x1100, MappingOffset: 0x1000})
		require.Len(t, answers, 1)
		assert.Eventually(t, func() bool { return r.Sizes().OpenFiles <= 2 }, 30*time.Second, time.Millisecond)
	}
	assert.Eventually(t, func() bool { return r.Sizes().OpenFiles == 0 }, 30*time.Second, 10*time.Millisecond)
	assert.NotZero(t, r.Sizes().CacheEntries, "answers stay")
}

// A file that costs too much work is searched once, and again only after the interval.
func TestCostlyFilesAreLeftAlone(t *testing.T) {
	program := programtest.Compile(t, "gcc", "shop.c", "-O1")
	r := newResolver(t, func(_ *Config, files *sources.Config) {
		files.Limits = symbols.Limits{TableBytes: 1 << 20, Work: 10}
	})
	m := r.Module(Key{IDs: idsOf(t, program)}, program)
	_, why := request(t, r, m, symbols.Position{Offset: 0x1100})
	assert.Equal(t, TooLarge, why)
	assert.Zero(t, r.Sizes().OpenFiles)
	_, why = request(t, r, m, symbols.Position{Offset: 0x1101})
	assert.Equal(t, TooLarge, why)
	missing, isMissing := r.Missing(m)
	assert.True(t, isMissing)
	assert.Equal(t, TooLarge, missing)
}

// If only lines cost too much work, all addresses still have functions.
func TestFunctionsWithoutCostlyLines(t *testing.T) {
	program := programtest.Compile(t, "g++", "shop.cc", "-g", "-no-pie")
	r := newResolver(t, func(c *Config, files *sources.Config) { c.Lines, files.Limits.Work = true, 1<<16 })
	m := r.Module(Key{IDs: idsOf(t, program)}, program)
	f, err := elf.Open(program)
	require.NoError(t, err)
	defer f.Close()
	list, err := f.Symbols()
	require.NoError(t, err)
	for _, name := range []string{"main", "plain_c"} {
		i := slices.IndexFunc(list, func(s elf.Symbol) bool { return s.Name == name })
		answers, _ := request(t, r, m, symbols.Position{Offset: list[i].Value, Virtual: true})
		require.Len(t, answers, 1)
		require.Len(t, answers[0].Frames, 1, name)
		assert.Equal(t, name, answers[0].Frames[0].Name)
		assert.Zero(t, answers[0].Frames[0].Line)
	}
}

// Only slow names count: a busy machine, on which many names take long in all, must not keep them from being demangled.
func TestManyNamesAreDemangled(t *testing.T) {
	const mangled = "_ZN4shop5priceEv"
	for _, test := range []struct {
		each     time.Duration
		expected int // of the 1000 names
	}{{5 * time.Millisecond, 1000}, {100 * time.Millisecond, 21}} {
		var clock time.Time
		d := demangler{style: symbols.DemangleFull, now: func() time.Time {
			clock = clock.Add(test.each)
			return clock
		}}
		frames := make([]symbols.Frame, 1000)
		for i := range frames {
			frames[i].Name = mangled
		}
		d.demangle(frames)
		count := 0
		for _, f := range frames {
			if f.Name == "shop::price()" && f.SystemName == mangled {
				count++
			}
		}
		assert.Equal(t, test.expected, count, "%s each", test.each)
	}
}

// hangingServer is a debuginfod server that answers no request, and counts them.
func hangingServer(t *testing.T) (url string, requests *atomic.Int64) {
	requests = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

// Unknown build ids and a slow server do not keep files of this machine from being read, and every one of them has a
// reason.
func TestDownloadsDoNotDelayFiles(t *testing.T) {
	url, requests := hangingServer(t)
	program := programtest.Compile(t, "gcc", "shop.c", "-O1")
	const unknown, queueSize = 100, 20
	r := newResolver(t, func(c *Config, files *sources.Config) {
		c.QueueSize, c.MaxModules, c.Lines = queueSize, 2*unknown, true
		files.Debuginfod = sources.DebuginfodConfig{Servers: []string{url}, CacheDirectory: t.TempDir(),
			MaxCacheBytes: 1 << 20}
	})
	at := []symbols.Position{{Offset: 0x1100, MappingOffset: 0x1000}}
	counts := map[Reason]int{}
	for i := range unknown {
		m := r.Module(Key{IDs: symbols.IDs{GNU: fmt.Sprintf("%040x", i)}}, "/no/such/file")
		var finished <-chan struct{}
		require.Eventually(t, func() bool {
			var why Reason
			why, finished = r.Request(m, at, nil)
			return why == Pending
		}, 30*time.Second, time.Millisecond, "the queue of files stays full")
		select {
		case <-finished:
			counts[r.Lookup(m, at[0]).Missing]++
		case <-time.After(5 * time.Millisecond):
			counts[Pending]++
		}
	}
	assert.Eventually(t, func() bool { return requests.Load() == 1 }, 30*time.Second, time.Millisecond)
	assert.Eventually(t, func() bool { return r.Sizes().Queued == queueSize }, 30*time.Second, time.Millisecond,
		"all wait but the one that a worker has")
	assert.Equal(t, unknown, counts[Pending]+counts[QueueFull], counts)

	// The file has functions, but no lines, for which the server would be asked.
	m := r.Module(Key{IDs: idsOf(t, program)}, program)
	_, finished := r.Request(m, at, nil)
	require.NotNil(t, finished)
	assert.Eventually(t, func() bool {
		answer := r.Lookup(m, at[0])
		return answer != nil && len(answer.Frames) > 0 && answer.Source == sources.File
	}, 30*time.Second, time.Millisecond)
	assert.EqualValues(t, 1, requests.Load())
}

// Files that wait for a download hold no file open.
func TestFilesAreClosedDuringDownloads(t *testing.T) {
	url, requests := hangingServer(t)
	program := programtest.Compile(t, "gcc", "shop.c", "-O1")
	r := newResolver(t, func(c *Config, files *sources.Config) {
		c.Lines = true
		files.Debuginfod = sources.DebuginfodConfig{Servers: []string{url}, CacheDirectory: t.TempDir(),
			MaxCacheBytes: 1 << 20}
	})
	m := r.Module(Key{IDs: idsOf(t, program)}, program)
	why, _ := r.Request(m, []symbols.Position{{Offset: 0x1100, MappingOffset: 0x1000}}, nil)
	require.Equal(t, Pending, why)
	require.Eventually(t, func() bool { return requests.Load() == 1 }, 30*time.Second, time.Millisecond)
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, o := range open {
		to, _ := os.Readlink("/proc/self/fd/" + o.Name())
		assert.NotEqual(t, program, to)
	}
}
