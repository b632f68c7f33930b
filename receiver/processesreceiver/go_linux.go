// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package processesreceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/procfs"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/goheap"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/target"
)

// binary is a Go program that processes run. Its file stays open.
type binary struct {
	file    *os.File
	users   int // under the lock of binaries
	mu      sync.Mutex
	image   *symbols.Image
	program *goheap.Program
	names   *goheap.Names
	buildID string
	// generation counts how often names was reset.
	generation int
}

// binaries are the Go programs and libraries that are in use.
type binaries struct {
	mu     sync.Mutex
	byFile map[target.File]*binary
	// others are files without Go, maxOthers at most: most processes share their libraries.
	others map[target.File]bool
}

const maxOthers = 10_000

func newBinaries() *binaries {
	return &binaries{byFile: map[target.File]*binary{}, others: map[target.File]bool{}}
}

// goLimits bound the reading of a program's file: its tables are read where they are, and one call reads at most 64
// MiB of them.
var goLimits = symbols.Limits{TableBytes: 16 << 20, Work: 256 << 20}

// get returns the program or library of an open file, or nil if it is not Go's. The caller must release it. The file is
// kept or closed.
func (b *binaries) get(open *os.File, file target.File) (*binary, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.byFile[file]
	if known != nil || b.others[file] {
		_ = open.Close()
		if known != nil {
			known.users++
		}
		return known, nil
	}
	opened, err := newBinary(open)
	if opened != nil && err == nil {
		b.byFile[file] = opened
		return opened, nil
	}
	_ = open.Close()
	if err == nil {
		if len(b.others) == maxOthers {
			clear(b.others)
		}
		b.others[file] = true
	}
	return nil, err
}

func newBinary(exe *os.File) (*binary, error) {
	info, err := exe.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	image, err := symbols.Open(exe, info.Size(), goLimits)
	if err != nil || image.GoVersion() == "" {
		return nil, nil //nolint:nilerr // not a Go program, or a damaged one
	}
	program, err := goheap.Find(image)
	if err != nil {
		return nil, err
	}
	return &binary{file: exe, users: 1, image: image, program: program, names: goheap.NewNames(image),
		buildID: image.IDs().GNU}, nil
}

func (b *binaries) release(file target.File) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.byFile[file]
	if known.users--; known.users == 0 {
		delete(b.byFile, file)
		_ = known.file.Close()
	}
}

// goSource reads the profiles of a Go program, or of a Go library in a program of another language.
type goSource struct {
	r        *processes
	binary   *binary
	file     target.File
	resource pcommon.Map
	// library is where a library begins, or 0.
	library uint64
	// baselines are by the kind of profile.
	baselines map[goheap.Kind]*decode.Baseline
	reader    goheap.Reader
	// generation is that of the names that the buckets have which the reader keeps.
	generation int
}

// newGoSource returns nil if the process has no Go. Of several Go runtimes, it is that of the program, or else of the
// first library.
func (r *processes) newGoSource(t *target.Target, mappings []target.Mapping, file target.File,
	resource pcommon.Map) (*goSource, error) {
	exe, err := t.OpenFile("exe")
	if err != nil {
		return nil, err
	}
	program, err := r.binaries.get(exe, file)
	var path string // of the library
	for i := 0; i < len(mappings) && program == nil && err == nil; i++ {
		if m := &mappings[i]; m.IsExecutable {
			var library *os.File
			if library, file, err = t.OpenMapped(m); err != nil {
				err = nil // it was deleted, or is not a file
				continue
			}
			if program, err = r.binaries.get(library, file); err != nil {
				err = fmt.Errorf("%s: %w", m.Name(), err)
			}
			path = m.Path
		}
	}
	if program == nil || err != nil {
		return nil, err
	}
	s := &goSource{
		r: r, binary: program, file: file, resource: resource, baselines: map[goheap.Kind]*decode.Baseline{},
		reader: goheap.Reader{Program: program.program, MaxBuckets: r.cfg.Go.MaxBuckets, Keep: r.keep},
	}
	if path != "" {
		s.library = mappings[slices.IndexFunc(mappings, func(m target.Mapping) bool { return m.Path == path })].Start
	}
	return s, nil
}

// first returns the first mapping of what the source reads.
func (s *goSource) first(t *target.Target, mappings []target.Mapping) (target.Mapping, bool) {
	if s.library == 0 {
		return t.Program(mappings)
	}
	for _, m := range mappings {
		if m.Start == s.library {
			return m, true
		}
	}
	return target.Mapping{}, false
}

// maxKeptBytes bounds the buckets that are kept of all processes: those of some 200,000 stacks. What is not kept is
// read anew each time.
const maxKeptBytes = 64 << 20

// keep reserves bytes for buckets, and reports whether there was room.
func (r *processes) keep(bytes int) bool {
	if r.keptBytes.Add(int64(bytes)) <= maxKeptBytes {
		return true
	}
	r.keptBytes.Add(-int64(bytes))
	return false
}

func (s *goSource) forget() { s.r.keptBytes.Add(-int64(s.reader.Forget())) }

func (s *goSource) close() {
	s.forget()
	s.r.binaries.release(s.file)
}

var kindNames = map[goheap.Kind]string{goheap.Memory: kind.Memory, goheap.Block: kind.Block, goheap.Mutex: kind.Mutex}

// collect reads the profiles of the process, and delivers the difference to the last ones.
func (s *goSource) collect(ctx context.Context, t *target.Target) error {
	mappings, err := t.Mappings()
	if err != nil {
		return err
	}
	first, ok := s.first(t, mappings)
	if !ok {
		return fmt.Errorf("the program is not mapped: %w", goheap.ErrUnreadable)
	}
	bias, ok := goheap.Bias(s.binary.image, first.Start, first.Offset)
	if !ok {
		return fmt.Errorf("the program is mapped from offset %d: %w", first.Offset, goheap.ErrUnreadable)
	}
	memory, err := t.OpenFile("mem")
	if err != nil {
		return err
	}
	defer func() { _ = memory.Close() }()
	s.binary.mu.Lock() // its names are shared by the processes of the program
	defer s.binary.mu.Unlock()
	if s.binary.names.IsFull() {
		s.binary.names.Reset()
		s.binary.generation++
	}
	if s.generation != s.binary.generation { // the buckets that are kept have numbers of names
		s.forget()
		s.generation = s.binary.generation
	}
	reservation := s.r.sink.budget.Begin()
	defer reservation.Release()
	s.reader.Bias = bias
	var read []goheap.Profile
	var off error
	err = reservation.Build(ctx, 0, func(reserve size.Reserve) (err error) {
		s.reader.Reserve = reserve
		read, off, err = s.reader.Read(memory)
		return err
	})
	if errors.Is(err, io.EOF) { // the file ends with the memory: of a program that ends, or executes itself anew
		return procfs.ErrGone
	}
	if err != nil {
		return err
	}
	var errs []error
	for i := range read {
		if name := kindNames[read[i].Kind]; slices.Contains(s.r.cfg.Go.Profiles, name) {
			errs = append(errs, s.deliver(ctx, &read[i], name, bias, first))
		}
	}
	if len(errs) == 0 {
		return off
	}
	return errors.Join(errs...)
}

func (s *goSource) deliver(ctx context.Context, p *goheap.Profile, name string, bias uint64,
	first target.Mapping) error {
	data, err := s.write(p, bias, first)
	if err != nil {
		return err
	}
	baseline := s.baselines[p.Kind]
	if baseline == nil {
		baseline = decode.NewBaseline(s.r.cfg.Go.MaxBuckets)
		s.baselines[p.Kind] = baseline
	}
	return s.r.sink.deliverTotals(ctx, data, name, baseline, s.resource)
}

// write writes a profile as pprof.
func (s *goSource) write(p *goheap.Profile, bias uint64, first target.Mapping) ([]byte, error) {
	return goheap.Write(p, &goheap.Source{
		Names: s.binary.names, Bias: bias, TicksPerSecond: goheap.TicksPerSecond(), At: time.Now(),
		Mapping: goheap.Mapping{Start: first.Start, Limit: first.Limit, Offset: first.Offset, File: first.Path,
			BuildID: s.binary.buildID},
	})
}
