// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/await"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

// opened is the result of a source, if it was asked: a file, or an error that is kept as long as the module's files are
// open.
type opened struct {
	file *sources.SymbolFile
	err  error
}

// work searches queued modules until the Resolver stops. It never waits for a server.
func (r *Resolver) work() {
	for {
		select {
		case <-r.stop.Done():
			return
		case m := <-r.queue:
			r.search(m)
		}
	}
}

// download downloads the files that searches need, and queues their modules again, until the Resolver stops.
func (r *Resolver) download() {
	for {
		select {
		case <-r.stop.Done():
			return
		case m := <-r.downloads:
			s := m.suspended
			began := time.Now()
			s.downloadErr = s.resolver.finder.Download(r.stop, s.file())
			s.downloads++
			s.downloading = time.Since(began)
			select {
			case r.queue <- m:
			case <-r.stop.Done():
				m.close()
				return
			}
		}
	}
}

// search resolves the addresses that a module waits for, until none were added meanwhile or a file has to be
// downloaded.
func (r *Resolver) search(m *Module) {
	for {
		s := m.suspended
		m.suspended = nil
		if s == nil {
			s = r.next(m)
		}
		if s == nil {
			r.closeExcess()
			return
		}
		if !s.run() {
			return
		}
		m.mu.Lock()
		s.finish(time.Now())
		close(m.finished)
		m.finished = make(chan struct{})
		m.mu.Unlock()
	}
}

// next begins the next round of a module. If no addresses wait, it releases the module and returns nil.
func (r *Resolver) next(m *Module) *search {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isRetryDue(time.Now()) {
		// Try all sources again: files may have appeared since.
		m.close()
		m.retryAt = time.Time{}
		m.round++
	}
	wanted := m.wanted
	m.wanted = nil
	if len(wanted) == 0 || r.stop.Err() != nil {
		r.release(m)
		return nil
	}
	addresses := slices.SortedFunc(maps.Keys(wanted), comparePositions)
	return &search{resolver: r, module: m, pids: slices.Clone(m.pids), addresses: addresses,
		best: make([]found, len(addresses))}
}

// release ends the worker's use of a module. m.mu is held.
func (r *Resolver) release(m *Module) {
	m.isBusy, m.lastUse = false, time.Now()
	close(m.finished)
	if m.isForgotten || r.stop.Err() != nil {
		m.close()
	}
}

func comparePositions(a, b symbols.Position) int {
	return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.MappingOffset, b.MappingOffset))
}

// search is one round of a module: its addresses, through all sources.
type search struct {
	resolver  *Resolver
	module    *Module
	pids      []int64
	addresses []symbols.Position
	best      []found
	// errs are the errors of the sources; hasFile reports whether one of them had a file.
	errs    []error
	hasFile bool
	retryAt time.Time

	kind sources.Kind // the source that is next
	// downloads counts how often the module's file was downloaded; downloading and downloadErr are the last one's time and
	// error.
	downloads   int
	downloading time.Duration
	downloadErr error
}

type found struct {
	symbols.Resolved
	kind sources.Kind
}

// run tries the sources in their order until all addresses are resolved as wanted. It returns false if the search was
// suspended: it goes on after a download.
func (s *search) run() bool {
	r := s.resolver
	enough := symbols.QualityExported
	if r.config.Lines {
		enough = symbols.QualityLines
	}
	for ; int(s.kind) < sources.NumKinds; s.kind++ {
		var left []int
		for i := range s.best {
			if s.best[i].Quality < enough {
				left = append(left, i)
			}
		}
		if len(left) == 0 {
			return true
		}
		began := time.Now().Add(-s.downloading)
		s.downloading = 0
		file, err := s.open(s.kind)
		if errors.Is(err, sources.ErrNotDownloaded) {
			if s.suspend() {
				return false
			}
			err = errDownloadsFull
			s.retryAt = began.Add(min(downloadRetry, r.config.RetryInterval))
		}
		if err == nil {
			s.hasFile = true
			err = s.resolve(file, s.kind, left)
		}
		if err != nil {
			s.errs = append(s.errs, err)
		}
		if !errors.Is(err, sources.ErrNotFound) {
			r.observe(s.kind, time.Since(began))
		}
	}
	return true
}

var errDownloadsFull = errors.New("too many files wait for a download")

// downloadRetry is the time after which a file is searched again if too many others waited for a download.
const downloadRetry = time.Second

// suspend queues the search for a download. It returns false if too many wait, or if files do not stay in the cache
// until they are opened. Meanwhile the functions that were found are known, and the module holds no file open.
func (s *search) suspend() bool {
	r, m := s.resolver, s.module
	const maxDownloads = 2
	if s.downloads >= maxDownloads {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, b := range s.best {
		if len(b.Frames) > 0 {
			r.cache.put(key{module: m.id, address: s.addresses[i]}, &Answer{Frames: b.Frames, Source: b.kind, round: m.round})
		}
	}
	for kind := range m.opened {
		m.closeFile(sources.Kind(kind), nil)
	}
	m.suspended = s
	select {
	case r.downloads <- m:
		return true
	default:
		m.suspended = nil
		return false
	}
}

func (s *search) file() sources.Module {
	return sources.Module{IDs: s.module.key.IDs, Path: s.module.path, PIDs: s.pids}
}

// open returns a source's file, from an earlier round if it is still open.
func (s *search) open(kind sources.Kind) (*sources.SymbolFile, error) {
	m := s.module
	if o := m.opened[kind]; o.file != nil || o.err != nil {
		return o.file, o.err
	}
	err := s.downloadErr
	s.downloadErr = nil
	var file *sources.SymbolFile
	if err == nil {
		file, err = s.resolver.finder.Open(kind, s.file())
	}
	if errors.Is(err, sources.ErrNotDownloaded) {
		return nil, err
	}
	if temporary := (*sources.TemporaryError)(nil); errors.As(err, &temporary) {
		if s.retryAt.IsZero() || temporary.Until.Before(s.retryAt) {
			s.retryAt = temporary.Until
		}
		return nil, err
	}
	m.opened[kind] = opened{file: file, err: err}
	return file, err
}

// maxDemangling bounds the time for slow names of one lookup, those above slowDemangling. Real ones take microseconds
// each: how many there are, or how busy the machine is, does not matter.
const (
	maxDemangling  = 2 * time.Second
	slowDemangling = 10 * time.Millisecond
)

// demangler demangles the names of one lookup. After too much time for slow ones, it leaves the others as they are.
type demangler struct {
	style symbols.DemangleStyle
	now   func() time.Time
	slow  time.Duration
}

func (d *demangler) demangle(frames []symbols.Frame) {
	for i := range frames {
		if d.slow > maxDemangling {
			return
		}
		began := d.now()
		frames[i].Demangle(d.style)
		if took := d.now().Sub(began); took > slowDemangling {
			d.slow += took
		}
	}
}

// resolve looks up the addresses that are left in a file.
func (s *search) resolve(file *sources.SymbolFile, kind sources.Kind, left []int) error {
	var indices []int
	var addrs []uint64
	for _, i := range left {
		if addr, ok := file.Address(s.addresses[i]); ok {
			indices = append(indices, i)
			addrs = append(addrs, addr)
		}
	}
	config := &s.resolver.config
	lines := config.Lines && !file.FunctionsOnly
	resolved, err := file.Resolve(addrs, lines)
	names := demangler{style: config.Demangle, now: time.Now}
	for k, i := range indices {
		if resolved[k].Quality > s.best[i].Quality {
			names.demangle(resolved[k].Frames)
			s.best[i] = found{resolved[k], kind}
		}
	}
	switch tooMuch := errors.Is(err, symbols.ErrTooMuchWork); {
	case tooMuch && lines:
		file.FunctionsOnly = true
	case tooMuch:
		s.module.closeFile(kind, err) // each new address would cost as much, so not until all sources are tried again
	}
	return err
}

// finish stores the answers. m.mu is held.
func (s *search) finish(now time.Time) {
	r, m := s.resolver, s.module
	reason := s.reason()
	isMissing := false
	for i, b := range s.best {
		if len(b.Frames) == 0 {
			isMissing = true
		}
		a := &Answer{Frames: b.Frames, Source: b.kind, Missing: reason, round: m.round}
		r.cache.put(key{module: m.id, address: s.addresses[i]}, a)
	}
	if !isMissing {
		return
	}
	if m.retryAt.IsZero() {
		m.retryAt = now.Add(r.config.RetryInterval)
		if !s.retryAt.IsZero() {
			m.retryAt = s.retryAt
		}
	}
	if !s.hasFile {
		m.missing = reason
		m.close() // the next round tries the sources again
	}
}

// reason returns why addresses were not found: the most specific of the sources' errors.
func (s *search) reason() Reason {
	best := NotFound
	if s.hasFile {
		best = NoSymbol
	}
	for _, err := range s.errs {
		best = max(best, reasonOf(err))
	}
	return best
}

func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, sources.ErrNotFound):
		return NotFound
	case errors.Is(err, errDownloadsFull):
		return QueueFull
	case errors.Is(err, sources.ErrNoBuildID):
		return NoBuildID
	case errors.Is(err, sources.ErrMismatch):
		return Mismatch
	case errors.Is(err, symbols.ErrTooLarge), errors.Is(err, symbols.ErrTooMuchWork):
		return TooLarge
	case errors.Is(err, symbols.ErrMalformed), errors.Is(err, symbols.ErrNotELF), errors.Is(err, io.ErrUnexpectedEOF):
		return Malformed
	}
	return Unavailable
}

// close closes the module's files. m.mu is held, or a worker has the module.
func (m *Module) close() {
	for kind := range m.opened {
		m.closeFile(sources.Kind(kind), nil)
	}
	m.opened = [sources.NumKinds]opened{}
}

// closeFile closes the file of a source, if it has one, which then has the result err, or none.
func (m *Module) closeFile(kind sources.Kind, err error) {
	if o := &m.opened[kind]; o.file != nil {
		o.file.Close()
		*o = opened{err: err}
	}
}

func (m *Module) size() (files, bytes int64) {
	for _, o := range m.opened {
		if o.file != nil {
			files++
			bytes += o.file.KeptBytes()
		}
	}
	return files, bytes
}

// closeIdle closes files that were not used for a while.
func (r *Resolver) closeIdle() {
	for await.Sleep(r.stop, max(r.config.KeepOpen/2, time.Millisecond)) {
		r.eachIdle(func(m *Module) {
			if time.Since(m.lastUse) >= r.config.KeepOpen {
				m.close()
			}
		})
	}
}

// eachIdle calls visit with each module that no worker has, and holds the module's lock meanwhile.
func (r *Resolver) eachIdle(visit func(*Module)) {
	for _, m := range r.allModules() {
		m.mu.Lock()
		if !m.isBusy {
			visit(m)
		}
		m.mu.Unlock()
	}
}

// maxOpenBytes bounds the memory of the tables of files that are held open between lookups.
const maxOpenBytes = 128 << 20

// closeExcess closes the least recently used files until no more are open than allowed.
func (r *Resolver) closeExcess() {
	type holding struct {
		module       *Module
		lastUse      time.Time
		files, bytes int64
	}
	var all []holding
	var files, bytes int64
	r.eachIdle(func(m *Module) {
		h := holding{module: m, lastUse: m.lastUse}
		if h.files, h.bytes = m.size(); h.files > 0 {
			files += h.files
			bytes += h.bytes
			all = append(all, h)
		}
	})
	slices.SortFunc(all, func(a, b holding) int { return a.lastUse.Compare(b.lastUse) })
	for _, h := range all {
		if files <= int64(r.config.MaxOpenFiles) && bytes <= maxOpenBytes {
			return
		}
		h.module.mu.Lock()
		if !h.module.isBusy {
			h.module.close()
			files -= h.files
			bytes -= h.bytes
		}
		h.module.mu.Unlock()
	}
}
