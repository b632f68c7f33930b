// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

// opened is the result of a source: a file, or an error that is kept as long as the module's files are open.
type opened struct {
	kind sources.Kind
	file *sources.Opened
	err  error
}

// work searches queued modules until the Resolver stops.
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

// search resolves the addresses that a module waits for, until none were added meanwhile.
func (r *Resolver) search(m *Module) {
	for {
		m.mu.Lock()
		if m.isRetryDue(time.Now()) {
			// Try all sources again: files may have appeared since.
			m.close()
			m.retryAt = time.Time{}
			m.round++
		}
		wanted, pids := m.wanted, slices.Clone(m.pids)
		m.wanted = nil
		if len(wanted) == 0 || r.stop.Err() != nil {
			r.release(m)
			m.mu.Unlock()
			r.closeExcess()
			return
		}
		m.mu.Unlock()

		addresses := make([]symbols.Position, 0, len(wanted))
		for a := range wanted {
			addresses = append(addresses, a)
		}
		slices.SortFunc(addresses, comparePositions)
		s := search{resolver: r, module: m, pids: pids, addresses: addresses, best: make([]found, len(addresses))}
		s.run()

		m.mu.Lock()
		s.finish(time.Now())
		close(m.finished)
		m.finished = make(chan struct{})
		m.mu.Unlock()
	}
}

// release ends the worker's use of a module. m.mu is held.
func (r *Resolver) release(m *Module) {
	m.isBusy, m.lastUse = false, time.Now()
	close(m.finished)
	if m.element == nil || r.stop.Err() != nil {
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
}

type found struct {
	frames  []symbols.Frame
	quality symbols.Quality
	kind    sources.Kind
}

// run tries the sources in their order until all addresses are resolved as wanted.
func (s *search) run() {
	r := s.resolver
	enough := symbols.QualityExported
	if r.config.Lines {
		enough = symbols.QualityLines
	}
	for kind := range sources.Kind(sources.NumKinds) {
		var left []int
		for i := range s.best {
			if s.best[i].quality < enough {
				left = append(left, i)
			}
		}
		if len(left) == 0 {
			return
		}
		began := time.Now()
		file, err := s.open(kind)
		if err == nil {
			s.hasFile = true
			err = s.resolve(file, kind, left)
		}
		if err != nil {
			s.errs = append(s.errs, err)
		}
		if !errors.Is(err, sources.ErrNotFound) {
			r.observe(kind, time.Since(began))
		}
	}
}

// open returns a source's file, from an earlier round if it is still open.
func (s *search) open(kind sources.Kind) (*sources.Opened, error) {
	m := s.module
	for _, o := range m.opened {
		if o.kind == kind {
			return o.file, o.err
		}
	}
	file, err := s.resolver.finder.Open(s.resolver.stop, kind,
		sources.Module{IDs: m.key.IDs, Path: m.path, PIDs: s.pids})
	if temporary := (*sources.TemporaryError)(nil); errors.As(err, &temporary) {
		if s.retryAt.IsZero() || temporary.Until.Before(s.retryAt) {
			s.retryAt = temporary.Until
		}
		return nil, err
	}
	m.opened = append(m.opened, opened{kind: kind, file: file, err: err})
	return file, err
}

// maxDemangling bounds the time for slow names of one lookup, those above slowDemangling. Real ones take microseconds each: how
// many there are, or how busy the machine is, does not matter.
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
		symbols.DemangleFrames(frames[i:i+1], d.style)
		if took := d.now().Sub(began); took > slowDemangling {
			d.slow += took
		}
	}
}

// resolve looks up the addresses that are left in a file.
func (s *search) resolve(file *sources.Opened, kind sources.Kind, left []int) error {
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
		if resolved[k].Quality > s.best[i].quality {
			names.demangle(resolved[k].Frames)
			s.best[i] = found{frames: resolved[k].Frames, quality: resolved[k].Quality, kind: kind}
		}
	}
	switch tooMuch := errors.Is(err, symbols.ErrTooMuchWork); {
	case tooMuch && lines:
		file.FunctionsOnly = true
	case tooMuch:
		s.giveUp(kind, err)
	}
	return err
}

// giveUp stops using a source's file until all sources are tried again, since each new address would cost as much.
func (s *search) giveUp(kind sources.Kind, err error) {
	for i := range s.module.opened {
		if o := &s.module.opened[i]; o.kind == kind && o.file != nil {
			o.file.Close()
			o.file, o.err = nil, err
		}
	}
}

// finish stores the answers. m.mu is held.
func (s *search) finish(now time.Time) {
	r, m := s.resolver, s.module
	reason := s.reason()
	isMissing := false
	for i, b := range s.best {
		if len(b.frames) == 0 {
			isMissing = true
		}
		a := &Answer{Frames: b.frames, Source: b.kind, Missing: reason, round: m.round}
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
	for _, err := range s.errs {
		if best == NotFound && errors.Is(err, sources.ErrNoBuildID) {
			return NoBuildID
		}
	}
	return best
}

// reasonOf returns the reason for an error; NotFound if there is no more specific one.
func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, sources.ErrNotFound), errors.Is(err, sources.ErrNoBuildID):
		return NotFound
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
	for _, o := range m.opened {
		if o.file != nil {
			o.file.Close()
		}
	}
	m.opened = nil
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
	ticker := time.NewTicker(max(r.config.KeepOpen/2, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-r.stop.Done():
			return
		case now := <-ticker.C:
			r.eachIdle(func(m *Module) {
				if now.Sub(m.lastUse) >= r.config.KeepOpen {
					m.close()
				}
			})
		}
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
	if files <= int64(r.config.MaxOpenFiles) && bytes <= r.config.MaxOpenBytes {
		return
	}
	slices.SortFunc(all, func(a, b holding) int { return a.lastUse.Compare(b.lastUse) })
	for _, h := range all {
		if files <= int64(r.config.MaxOpenFiles) && bytes <= r.config.MaxOpenBytes {
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
