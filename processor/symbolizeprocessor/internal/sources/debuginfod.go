// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
)

// debuginfod downloads debug files by their GNU build id from debuginfod servers (debuginfod(8)), and keeps them on
// disk.
type debuginfod struct {
	config DebuginfodConfig
	client *http.Client
	// observe is called for each request.
	observe func(Request)

	mu      sync.Mutex
	servers []server
	missing map[string]time.Time // until when a build id is not requested again
	// cached has the sizes of the files on disk by name, bytes is their sum.
	cached *simplelru.LRU[string, int64]
	bytes  int64
}

// Request is a request to a debuginfod server.
type Request struct {
	Server string // without secrets
	// Result is found, not_found, error or too_large.
	Result string
	// Reason is a coarse name of the error.
	Reason string
	Err    error
}

// The reasons of errors besides the statuses of answers.
const (
	reasonRequest = "request" // no answer, or an incomplete one
	reasonCache   = "cache_directory"
	reasonFile    = "wrong_file" // 200 with another file, or with none
)

// server is not used for some time after it failed.
type server struct {
	url      string
	failures int
	until    time.Time
}

// TemporaryError is returned if a server may have the file later.
type TemporaryError struct {
	Err   error
	Until time.Time
}

func (e *TemporaryError) Error() string { return e.Err.Error() }
func (e *TemporaryError) Unwrap() error { return e.Err }

const (
	// maxMissing bounds how many build ids without a file are remembered. After missingInterval they are requested again.
	maxMissing      = 100_000
	missingInterval = time.Hour
	// maxDownloadBytes bounds the size of a file that is downloaded.
	maxDownloadBytes = 1 << 30
)

func newDebuginfod(config DebuginfodConfig, client *http.Client, observe func(Request)) *debuginfod {
	d := &debuginfod{config: config, client: client, observe: observe, missing: map[string]time.Time{}}
	d.cached, _ = simplelru.NewLRU[string, int64](math.MaxInt, nil) // bytes are the limit
	for _, url := range config.Servers {
		d.servers = append(d.servers, server{url: strings.TrimRight(url, "/")})
	}
	d.load()
	return d
}

func (f *Finder) openDebuginfod(m Module) (*SymbolFile, error) {
	d := f.debuginfod
	if d == nil || !isDebuginfodID(m.IDs.GNU) {
		return nil, ErrNotFound
	}
	name, file, err := d.open(m.IDs.GNU)
	if err != nil {
		return nil, err
	}
	s := f.search(m)
	if o := s.try(file, nil); o != nil {
		return o, nil
	}
	if isOfFile(s.err) { // a server sent another file: do not request it again for a while
		d.remove(name)
		d.noteMissing(m.IDs.GNU)
	}
	return nil, s.err
}

func isDebuginfodID(id string) bool { return isHex(id) && len(id) >= 8 }

// isOfFile reports whether an error is due to the content of a file, and not to the machine that reads it.
func isOfFile(err error) bool {
	return slices.ContainsFunc([]error{
		ErrMismatch, symbols.ErrNotELF, symbols.ErrMalformed, symbols.ErrTooLarge, io.ErrUnexpectedEOF,
	}, func(of error) bool { return errors.Is(err, of) })
}

const cacheSuffix = ".debug"

// open opens a build id's file in the cache. The error is ErrNotFound if no server has the file.
func (d *debuginfod) open(id string) (name string, file *os.File, err error) {
	name = id + cacheSuffix
	d.mu.Lock()
	_, isCached := d.cached.Get(name)
	isMissing := time.Now().Before(d.missing[id])
	d.mu.Unlock()
	switch {
	case !isCached && isMissing:
		return name, nil, ErrNotFound
	case !isCached:
		return name, nil, ErrNotDownloaded
	}
	// Keep the order of use across restarts.
	_ = os.Chtimes(filepath.Join(d.config.CacheDirectory, name), time.Time{}, time.Now())
	file, err = openFile(d.config.CacheDirectory, name)
	if errors.Is(err, fs.ErrNotExist) { // another download needed the room, or someone else removed it
		d.remove(name)
		err = ErrNotDownloaded
	}
	return name, file, err
}

// Download downloads the file for which Open returned ErrNotDownloaded, which Open then opens. It waits for servers.
func (f *Finder) Download(ctx context.Context, m Module) error {
	d, id := f.debuginfod, m.IDs.GNU
	var s search
	var temporary *TemporaryError
	check := func(file *os.File) error {
		image, err := f.search(m).check(file)
		if err == nil {
			err = image.Whole()
		}
		return err
	}
	for i := range d.servers {
		err := d.download(ctx, i, id, check)
		if err == nil {
			return nil
		}
		if t := (*TemporaryError)(nil); !errors.As(err, &t) {
			s.note(err)
		} else if temporary == nil || t.Until.Before(temporary.Until) {
			temporary = t
		}
	}
	if temporary != nil {
		return temporary
	}
	if ctx.Err() == nil {
		d.noteMissing(id)
	}
	return s.result()
}

func (d *debuginfod) busyUntil(i int) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.servers[i].until
}

func (d *debuginfod) noteMissing(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.missing) >= maxMissing {
		clear(d.missing)
	}
	d.missing[id] = time.Now().Add(missingInterval)
}

// download fetches a debug file that check accepts into the cache; if a server has none, the program itself.
func (d *debuginfod) download(ctx context.Context, i int, id string, check func(*os.File) error) error {
	if until := d.busyUntil(i); time.Now().Before(until) {
		return &TemporaryError{Err: errors.New("the server failed; not using it until its backoff has passed"), Until: until}
	}
	var s search
	for _, kind := range []string{"debuginfo", "executable"} {
		err := d.fetch(ctx, i, id, kind, check)
		if s.note(err); err == nil || !errors.Is(err, ErrNotFound) && !isOfFile(err) {
			return err
		}
	}
	return s.err
}

func (d *debuginfod) fetch(ctx context.Context, i int, id, kind string, check func(*os.File) error) (err error) {
	url := d.servers[i].url + "/buildid/" + id + "/" + kind
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := d.client.Do(request)
	if err != nil {
		return d.failed(ctx, i, 0, reasonRequest, err)
	}
	defer response.Body.Close()
	of := Request{Server: redact.RawURL(d.servers[i].url), Result: "found"}
	switch response.StatusCode {
	case http.StatusOK:
		if err = d.store(response, id+cacheSuffix, check); errors.Is(err, symbols.ErrTooLarge) {
			of.Result = "too_large"
		} else if wrong := (*wrongFileError)(nil); errors.As(err, &wrong) {
			of.Result, of.Reason, of.Err = "error", reasonFile, fmt.Errorf("%s: %w", redact.RawURL(url), err)
		} else if local := (*fs.PathError)(nil); errors.As(err, &local) {
			return d.failed(ctx, i, 0, reasonCache, err)
		} else if err != nil {
			return d.failed(ctx, i, 0, reasonRequest, err)
		}
	case http.StatusNotFound:
		of.Result, err = "not_found", ErrNotFound
	case http.StatusForbidden, http.StatusBadRequest, http.StatusGone:
		// It is about this file: stores such as S3 answer so if they do not have it.
		of.Result, of.Reason, of.Err, err = "error", response.Status, errors.New(response.Status), ErrNotFound
	default:
		return d.failed(ctx, i, httpserver.RetryAfter(response.Header, time.Now()), response.Status,
			fmt.Errorf("debuginfod: %s", response.Status))
	}
	d.succeeded(i)
	d.observe(of)
	return err
}

// wrongFileError is what check has against a file.
type wrongFileError struct{ error }

func (e *wrongFileError) Unwrap() error { return e.error }

// store writes a response's body to the cache, through a temporary file, if check accepts it: the page of a proxy, for
// example, must not hide the file that the next server has.
func (d *debuginfod) store(response *http.Response, name string, check func(*os.File) error) (err error) {
	limit := min(maxDownloadBytes, d.config.MaxCacheBytes)
	if response.ContentLength > limit {
		return fmt.Errorf("%d bytes: %w", response.ContentLength, symbols.ErrTooLarge)
	}
	if err := os.MkdirAll(d.config.CacheDirectory, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(d.config.CacheDirectory, "download-*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	size, err := io.Copy(file, io.LimitReader(response.Body, limit+1))
	var wrong error
	if err == nil && size <= limit {
		wrong = check(file)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if size > limit {
		return fmt.Errorf("above %d bytes: %w", limit, symbols.ErrTooLarge)
	}
	if isOfFile(wrong) {
		return &wrongFileError{wrong}
	}
	if err = os.Rename(file.Name(), filepath.Join(d.config.CacheDirectory, name)); err != nil {
		return err
	}
	d.add(name, size)
	return nil
}

// failed stops using a server for a time that doubles with each failure.
func (d *debuginfod) failed(ctx context.Context, i int, atLeast time.Duration, reason string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.observe(Request{Server: redact.RawURL(d.servers[i].url), Result: "error", Reason: reason, Err: redact.Error(err)})
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &d.servers[i]
	wait := d.config.InitialBackoff << min(s.failures, 20)
	wait = min(max(wait, atLeast), d.config.MaxBackoff)
	wait += rand.N(wait/4 + 1)
	s.failures++
	s.until = time.Now().Add(wait)
	return &TemporaryError{Err: err, Until: s.until}
}

func (d *debuginfod) succeeded(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.servers[i].failures, d.servers[i].until = 0, time.Time{}
}

// load lists the files that an earlier run left in the cache, and removes partial downloads.
func (d *debuginfod) load() {
	entries, err := os.ReadDir(d.config.CacheDirectory)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		id, isFile := strings.CutSuffix(entry.Name(), cacheSuffix)
		switch {
		case isFile && isHex(id):
			files = append(files, info)
		case strings.HasSuffix(entry.Name(), ".part"):
			_ = os.Remove(filepath.Join(d.config.CacheDirectory, entry.Name()))
		}
	}
	slices.SortStableFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range files {
		d.cached.Add(info.Name(), info.Size())
		d.bytes += info.Size()
	}
	d.evict(0)
}

func (d *debuginfod) add(name string, size int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, _ := d.cached.Peek(name)
	d.cached.Add(name, size)
	d.bytes += size - old
	d.evict(1)
}

// evict removes the least recently used files until the rest fits, but keeps the given number. d.mu is held.
func (d *debuginfod) evict(keep int) {
	for d.bytes > d.config.MaxCacheBytes && d.cached.Len() > keep {
		name, _, _ := d.cached.GetOldest()
		d.removeLocked(name)
	}
}

func (d *debuginfod) remove(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeLocked(name)
}

func (d *debuginfod) removeLocked(name string) {
	size, ok := d.cached.Peek(name)
	if !ok {
		return
	}
	d.bytes -= size
	d.cached.Remove(name)
	_ = os.Remove(filepath.Join(d.config.CacheDirectory, name))
}

func (d *debuginfod) cacheBytes() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytes
}
