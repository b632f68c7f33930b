// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package goheap

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
)

// Program has the addresses of the data to read. Addresses are those of the file: a program that may be loaded
// anywhere has its own at a distance from them.
type Program struct {
	// Version is that of Go, such as go1.26.1.
	Version string
	// lists are where the three lists may begin, among other variables.
	lists []uint64
	// memoryRate is runtime.MemProfileRate.
	memoryRate uint64
	// mutexRate is the fraction of contentions that is sampled; 0 if it is not needed.
	mutexRate uint64
	// isNeverAsked means that nothing in the program reads its memory profile, so that the linker switched it off.
	isNeverAsked bool
	// ticksAreNanos means that the runtime measures waits in nanoseconds.
	ticksAreNanos bool
}

// Errors of programs that cannot be read.
var (
	// ErrNotGo is returned for a program of another language.
	ErrNotGo = errors.New("not a Go program")
	// ErrUnsupported is returned for programs of old compilers and for other architectures.
	ErrUnsupported = errors.New("not supported")
)

// The functions whose code refers to the variables. A name that a version does not have is left out.
const (
	inserts      = "runtime.stkbucket"
	samples      = "runtime.profilealloc"
	prepares     = "runtime.allocmcache"
	samplesMutex = "sync.event"
)

// readers are the functions without which the linker switches the memory profile off: those of Go 1.23 and before.
var readers = []string{"runtime.memProfileInternal", "runtime.MemProfile"}

// Find finds the variables of a program.
func Find(image *symbols.Image) (*Program, error) {
	p := &Program{Version: image.GoVersion()}
	switch arch := image.Architecture(); arch {
	case elf.EM_X86_64:
	case elf.EM_AARCH64:
		p.ticksAreNanos = true
	default:
		return nil, fmt.Errorf("programs for %v are %w", arch, ErrUnsupported)
	}
	if err := image.ReadGoTable(); err != nil {
		return nil, err
	}
	functions, err := image.GoFunctions(append([]string{inserts, samples, prepares, samplesMutex}, readers...)...)
	if err != nil {
		return nil, err
	}
	minor, isKnown := minorVersion(p.Version)
	if len(functions) == 0 && p.Version == "" {
		return nil, ErrNotGo
	}
	const oldest = 18
	if isKnown && minor < oldest {
		return nil, fmt.Errorf("programs of %s are %w, only those of go1.%d and later", p.Version, ErrUnsupported, oldest)
	}
	for _, needed := range []string{inserts, samples, prepares} {
		if _, ok := functions[needed]; !ok {
			return nil, fmt.Errorf("the program (%s) has no function %s: %w", p.Version, needed, ErrUnsupported)
		}
	}
	for address := range references(image, functions[inserts]) {
		p.lists = append(p.lists, address)
	}
	slices.Sort(p.lists)
	if p.memoryRate, err = only(references(image, functions[samples]).
		and(references(image, functions[prepares]))); err != nil {
		return nil, fmt.Errorf("find runtime.MemProfileRate of %s: %w", p.Version, err)
	}
	const scalesItself = 20 // the runtime scales the mutex profile since this version
	if f, ok := functions[samplesMutex]; ok && isKnown && minor < scalesItself {
		if p.mutexRate, err = only(references(image, f)); err != nil {
			return nil, fmt.Errorf("find the rate of the mutex profile of %s: %w", p.Version, err)
		}
	}
	p.isNeverAsked = !slices.ContainsFunc(readers, func(name string) bool { _, ok := functions[name]; return ok })
	return p, nil
}

func only(found addresses) (uint64, error) {
	if len(found) != 1 {
		return 0, fmt.Errorf("%d variables in question: %w", len(found), ErrUnsupported)
	}
	for address := range found {
		return address, nil
	}
	return 0, nil
}

// minorVersion returns 26 for go1.26.1 and for `devel go1.26-…`.
func minorVersion(version string) (minor int, ok bool) {
	_, rest, ok := strings.Cut(version, "go1.")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		rest = rest[:end]
	}
	minor, err := strconv.Atoi(rest)
	return minor, ok && err == nil
}

// Bias returns the distance from the addresses in a file to those in a process, which has the file's offset at start.
func Bias(image *symbols.Image, start, offset uint64) (uint64, bool) {
	address, ok := image.Address(symbols.Position{Offset: offset})
	return start - address, ok
}
