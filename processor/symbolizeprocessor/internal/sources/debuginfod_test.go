// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
)

// elfWithID is a file that has a GNU build id and nothing else.
func elfWithID(id byte, size int) []byte {
	var b bytes.Buffer
	note := []byte{4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0}
	note = append(note, bytes.Repeat([]byte{id}, 20)...)
	_ = binary.Write(&b, binary.LittleEndian, elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, Version: 1, Phoff: 64, Phentsize: 56, Phnum: 1,
	})
	_ = binary.Write(&b, binary.LittleEndian, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: 120, Filesz: uint64(len(note))})
	b.Write(note)
	if b.Len() < size {
		b.Write(make([]byte, size-b.Len()))
	}
	return b.Bytes()
}

func idOf(b byte) string { return strings.Repeat(fmt.Sprintf("%02x", b), 20) }

// debuginfodServer answers with what answer returns, and counts the requests.
type debuginfodServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	results  []string
	reasons  []string
}

func newServer(t *testing.T, answer http.HandlerFunc) *debuginfodServer {
	s := &debuginfodServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.URL.Path)
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *debuginfodServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func finder(t *testing.T, change func(*DebuginfodConfig), servers ...*debuginfodServer) *Finder {
	config := Config{
		Limits: symbols.DefaultLimits,
		Debuginfod: DebuginfodConfig{
			CacheDirectory: filepath.Join(t.TempDir(), "cache"), MaxCacheBytes: 1 << 20,
			InitialBackoff: time.Hour, MaxBackoff: 2 * time.Hour,
		},
	}
	for _, s := range servers {
		config.Debuginfod.Servers = append(config.Debuginfod.Servers, s.URL+"/")
	}
	if change != nil {
		change(&config.Debuginfod)
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return NewFinder(config, http.DefaultClient, func(r Request) {
		servers[0].mu.Lock()
		defer servers[0].mu.Unlock()
		servers[0].results = append(servers[0].results, r.Result)
		if r.Err != nil {
			servers[0].reasons = append(servers[0].reasons, r.Reason)
		}
	})
}

func fetch(t *testing.T, f *Finder, id string) error {
	t.Helper()
	m := Module{IDs: symbols.IDs{GNU: id}}
	o, err := f.Open(Debuginfod, m)
	if errors.Is(err, ErrNotDownloaded) {
		if err := f.Download(context.Background(), m); err != nil {
			return err
		}
		o, err = f.Open(Debuginfod, m)
	}
	if err == nil {
		assert.Equal(t, id, o.IDs().GNU)
		o.Close()
	}
	return err
}

func TestDebuginfodIsCached(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/executable") {
			_, _ = w.Write(elfWithID(1, 0))
			return
		}
		w.WriteHeader(http.StatusNotFound)
	})
	f := finder(t, nil, s)
	require.NoError(t, fetch(t, f, idOf(1)))
	require.NoError(t, fetch(t, f, idOf(1)))
	assert.Equal(t, []string{"/buildid/" + idOf(1) + "/debuginfo", "/buildid/" + idOf(1) + "/executable"}, s.requests)
	assert.Equal(t, []string{"not_found", "found"}, s.results)
	assert.Positive(t, f.DebuginfodCacheBytes())

	// A restart finds what is there.
	again := NewFinder(f.config, http.DefaultClient, func(Request) {})
	require.NoError(t, fetch(t, again, idOf(1)))
	assert.Equal(t, 2, s.count())
	assert.Equal(t, f.DebuginfodCacheBytes(), again.DebuginfodCacheBytes())
}

func TestDebuginfodRemembersWhatIsMissing(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	f := finder(t, nil, s)
	for range 3 {
		require.ErrorIs(t, fetch(t, f, idOf(1)), ErrNotFound)
	}
	assert.Equal(t, 2, s.count())
}

// A store such as S3 refuses what it does not have, unless its list may be read. That costs no other file.
func TestDebuginfodRefusesAFile(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusBadRequest, http.StatusGone} {
		s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, idOf(1)) {
				_, _ = w.Write(elfWithID(1, 0))
				return
			}
			w.WriteHeader(status)
		})
		f := finder(t, nil, s)
		for range 3 {
			require.ErrorIs(t, fetch(t, f, idOf(2)), ErrNotFound)
		}
		require.NoError(t, fetch(t, f, idOf(1)))
		assert.Equal(t, 3, s.count())
		assert.Equal(t, []string{"error", "error", "found"}, s.results)
		assert.Contains(t, s.reasons[0], http.StatusText(status))
	}
}

// What keeps servers from being used is reported: a directory that cannot be written, an address where nobody listens.
func TestDebuginfodReasons(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(elfWithID(1, 0)) })
	f := finder(t, func(d *DebuginfodConfig) { d.CacheDirectory = "/dev/null/cache" }, s)
	temporary := (*TemporaryError)(nil)
	require.ErrorAs(t, fetch(t, f, idOf(1)), &temporary)
	assert.Equal(t, []string{reasonCache}, s.reasons)
	s.Close()
	f = finder(t, nil, s)
	require.ErrorAs(t, fetch(t, f, idOf(1)), &temporary)
	assert.Equal(t, []string{reasonCache, reasonRequest}, s.reasons)
}

// A file with another build id is not kept.
func TestDebuginfodChecksBuildIDs(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(elfWithID(2, 0)) })
	f := finder(t, nil, s)
	require.ErrorIs(t, fetch(t, f, idOf(1)), ErrMismatch)
	require.ErrorIs(t, fetch(t, f, idOf(1)), ErrNotFound)
	assert.Equal(t, 2, s.count(), "the debug file and the program")
	assert.Zero(t, f.DebuginfodCacheBytes())
	assert.Empty(t, list(t, f))
}

// The pages of a proxy, empty answers and other files do not hide what the next server, or the next path, has.
func TestDebuginfodWrongFiles(t *testing.T) {
	good := elfWithID(1, 0)
	for name, body := range map[string][]byte{
		"a page": []byte("<!DOCTYPE html><title>Sign in</title>"), "nothing": nil, "another build": elfWithID(2, 0),
		"a part": good[:100],
	} {
		wrong := newServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
		half := newServer(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/debuginfo") {
				_, _ = w.Write(body)
				return
			}
			_, _ = w.Write(good)
		})
		f := finder(t, nil, wrong, half)
		require.NoError(t, fetch(t, f, idOf(1)), name)
		assert.Equal(t, []int{2, 2}, []int{wrong.count(), half.count()}, name)
		assert.Equal(t, []string{"error", "error", "error", "found"}, wrong.results, name)
		assert.Equal(t, []string{reasonFile, reasonFile, reasonFile}, wrong.reasons, name)
		assert.Equal(t, []string{idOf(1) + cacheSuffix}, list(t, f), name)
		require.Error(t, fetch(t, f, idOf(3)), name)
		require.ErrorIs(t, fetch(t, f, idOf(3)), ErrNotFound, "it is not requested again for a while")
	}
}

// What is wrong on this machine does not cost a file that was downloaded.
func TestDebuginfodKeepsFilesOnLocalErrors(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(elfWithID(1, 0)) })
	f := finder(t, nil, s)
	require.NoError(t, fetch(t, f, idOf(1)))
	directory := f.config.Debuginfod.CacheDirectory
	name := filepath.Join(directory, idOf(1)+cacheSuffix)

	require.NoError(t, os.Rename(name, name+"-away"))
	require.NoError(t, os.Mkdir(name, 0o700)) // cannot be opened as a file
	require.ErrorIs(t, fetch(t, f, idOf(1)), errNotRegular)
	require.NoError(t, os.Remove(name))
	require.NoError(t, os.Rename(name+"-away", name))
	require.NoError(t, fetch(t, f, idOf(1)))
	assert.Equal(t, 1, s.count())

	require.NoError(t, os.Remove(name))
	require.NoError(t, fetch(t, f, idOf(1)))
	assert.Equal(t, 2, s.count(), "a file that is gone is downloaded again")
	assert.Equal(t, []string{idOf(1) + cacheSuffix}, list(t, f))
}

func list(t *testing.T, f *Finder) (names []string) {
	entries, err := os.ReadDir(f.config.Debuginfod.CacheDirectory)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A server that fails is not used for a while; the next one is.
func TestDebuginfodBacksOff(t *testing.T) {
	failing := newServer(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	working := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, idOf(3)) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(elfWithID(1, 0))
	})
	f := finder(t, nil, failing, working)
	require.NoError(t, fetch(t, f, idOf(1)))
	temporary := (*TemporaryError)(nil)
	require.ErrorAs(t, fetch(t, f, idOf(2)), &temporary, "the failing one may have the right file")
	assert.Equal(t, 1, failing.count())
	require.ErrorAs(t, fetch(t, f, idOf(3)), &temporary, "the failing one may have it")
	assert.WithinDuration(t, time.Now().Add(time.Hour), temporary.Until, 20*time.Minute)
	assert.Equal(t, 1, failing.count())
}

func TestDebuginfodBackoffGrows(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	f := finder(t, func(d *DebuginfodConfig) { d.InitialBackoff = time.Second; d.MaxBackoff = 100 * time.Second }, s)
	var waits []time.Duration
	for range 9 {
		temporary := (*TemporaryError)(nil)
		require.ErrorAs(t, fetch(t, f, idOf(1)), &temporary)
		waits = append(waits, time.Until(temporary.Until))
		f.debuginfod.servers[0].until = time.Time{}
	}
	assert.InDelta(t, 34, waits[0].Seconds(), 5, "what the server asks for")
	assert.InDelta(t, 112, waits[8].Seconds(), 13, "max_backoff")
}

func TestDebuginfodCacheIsBounded(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		var id byte
		_, _ = fmt.Sscanf(r.URL.Path, "/buildid/%02x", &id)
		_, _ = w.Write(elfWithID(id, 300<<10))
	})
	f := finder(t, nil, s)
	for id := range byte(10) {
		require.NoError(t, fetch(t, f, idOf(id+1)))
		require.NoError(t, fetch(t, f, idOf(1)), "the one that is used stays")
		assert.LessOrEqual(t, f.DebuginfodCacheBytes(), int64(1<<20))
		time.Sleep(2 * time.Millisecond)
	}
	assert.ElementsMatch(t, []string{idOf(1) + ".debug", idOf(9) + ".debug", idOf(10) + ".debug"}, list(t, f))

	// After a restart, a smaller bound applies, and partial downloads are removed.
	require.NoError(t, os.WriteFile(filepath.Join(f.config.Debuginfod.CacheDirectory, "download-1.part"),
		make([]byte, 100), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(f.config.Debuginfod.CacheDirectory, "someone's notes"),
		make([]byte, 100), 0o600))
	config := f.config
	config.Debuginfod.MaxCacheBytes = 400 << 10
	assert.Equal(t, int64(300<<10), NewFinder(config, http.DefaultClient, func(Request) {}).DebuginfodCacheBytes())
	assert.ElementsMatch(t, []string{idOf(1) + ".debug", "someone's notes"}, list(t, f))
}

func TestDebuginfodFilesAreBounded(t *testing.T) {
	for _, isStated := range []bool{true, false} {
		s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
			if isStated {
				w.Header().Set("Content-Length", "1099511627776")
			}
			block := make([]byte, 64<<10)
			for i := 0; i < 64; i++ {
				if _, err := w.Write(block); err != nil {
					return
				}
				if f, ok := w.(http.Flusher); ok {
					f.Flush()
				}
			}
		})
		f := finder(t, nil, s)
		require.ErrorIs(t, fetch(t, f, idOf(1)), symbols.ErrTooLarge)
		assert.Zero(t, f.DebuginfodCacheBytes())
		if _, err := os.Stat(f.config.Debuginfod.CacheDirectory); err == nil {
			assert.Empty(t, list(t, f))
		}
	}
}

// A build id becomes part of a path and of a URL: only hexadecimal digits get there.
func TestBuildIDsAreNoPaths(t *testing.T) {
	s := newServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(elfWithID(1, 0)) })
	f := finder(t, nil, s)
	f.config.DebugDirectories = []string{"/"}
	for _, id := range []string{"", "ab", "../../../../etc/passwd", "../../" + idOf(1), idOf(1) + "?a=b", idOf(1)[:39] +
		"/", "ABCDEF0123"} {
		require.ErrorIs(t, fetch(t, f, id), ErrNotFound, id)
		_, err := f.Open(DebugDirectory, Module{IDs: symbols.IDs{GNU: id}})
		require.ErrorIs(t, err, ErrNotFound, id)
	}
	assert.Zero(t, s.count())
}

func TestDebuginfodEndsWithItsContext(t *testing.T) {
	s := newServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	f := finder(t, nil, s)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	err := f.Download(ctx, Module{IDs: symbols.IDs{GNU: idOf(1)}})
	require.True(t, errors.Is(err, context.DeadlineExceeded), err)
}
