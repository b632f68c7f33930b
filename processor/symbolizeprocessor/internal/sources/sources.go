// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
)

// Kind is a source of symbols: the value of an attribute and of a metric's attribute.
type Kind int

// The sources, in the order in which they are asked.
const (
	File           Kind = iota // the mapped file itself
	DebugDirectory             // a file in a debug directory
	Debuginfod                 // a file from a debuginfod server
	Upload                     // a file in the directory of uploaded files
	NumKinds       int  = iota
)

var kindNames = [NumKinds]string{"file", "debug_directory", "debuginfod", "upload"}

func (k Kind) String() string { return kindNames[k] }

// Module is what a mapping has about its file.
type Module struct {
	IDs symbols.IDs
	// Path is the mapping's filename: a path as the process saw it, or a name alone.
	Path string
	// PIDs are processes that have it mapped, if that is known.
	PIDs []int64
}

// Errors of a search. Other errors are those of package symbols and of the system.
var (
	// ErrNotFound is returned if a source has no file for the module.
	ErrNotFound = errors.New("not found")
	// ErrMismatch is returned if there is a file of the module's name, but of another build.
	ErrMismatch = errors.New("build id differs")
	// ErrNoBuildID is returned for a mapping without a build id: the file at its path could be another one.
	ErrNoBuildID = errors.New("mapping without a build id")
)

// Settings configure a Finder.
type Settings struct {
	// Files allows to use the mapped file; ProcPath is where the host's /proc is; Roots are folders below which the
	// paths of mappings are looked for.
	Files    bool
	ProcPath string
	Roots    []string
	// WithoutBuildID uses the mapped file of a mapping without a build id.
	WithoutBuildID   bool
	DebugDirectories []string
	// UploadDirectory is empty for none. It is read again after UploadRefresh.
	UploadDirectory string
	UploadRefresh   time.Duration
	// MaxFileBytes bounds the size of a file that is opened.
	MaxFileBytes int64
	Limits       symbols.Limits
	Debuginfod   DebuginfodSettings
}

// DebuginfodSettings configure the servers and the cache on disk.
type DebuginfodSettings struct {
	Servers        []string
	Client         *http.Client
	CacheDirectory string
	MaxCacheBytes  int64
	MaxFileBytes   int64
	// MissingInterval is the time after which a build id that no server has is requested again.
	MissingInterval time.Duration
	// InitialBackoff and MaxBackoff bound how long a server is not used after it failed.
	InitialBackoff, MaxBackoff time.Duration
	// Observe is called for each request with its result: found, not_found, error, too_large.
	Observe func(result string)
}

// Finder finds files. It is safe for concurrent use.
type Finder struct {
	settings   Settings
	debuginfod *debuginfod
	uploads    *uploads
}

// NewFinder returns a Finder. It opens nothing yet.
func NewFinder(settings Settings) *Finder {
	f := &Finder{settings: settings}
	if len(settings.Debuginfod.Servers) > 0 {
		f.debuginfod = newDebuginfod(settings.Debuginfod)
	}
	if settings.UploadDirectory != "" {
		f.uploads = &uploads{root: settings.UploadDirectory, refresh: settings.UploadRefresh, limits: settings.Limits}
	}
	return f
}

// DebuginfodCacheBytes returns the size of the cache on disk.
func (f *Finder) DebuginfodCacheBytes() int64 {
	if f.debuginfod == nil {
		return 0
	}
	return f.debuginfod.cacheBytes()
}

// Opened is a file with symbols. Close ends its use.
type Opened struct {
	*symbols.Image
	file *os.File
}

// Close closes the file.
func (o *Opened) Close() { _ = o.file.Close() }

// Open opens the file of one source. The error is ErrNotFound if there is none.
func (f *Finder) Open(ctx context.Context, kind Kind, m Module) (*Opened, error) {
	switch kind {
	case File:
		return f.openMapped(m)
	case DebugDirectory:
		return f.openDebugFile(m)
	case Debuginfod:
		return f.openDebuginfod(ctx, m)
	case Upload:
		return f.openUpload(m)
	}
	return nil, ErrNotFound
}

// check returns an Opened for a file whose build ids are those of the module, and closes any other.
func (f *Finder) check(file *os.File, m Module) (*Opened, error) {
	info, err := file.Stat()
	if err == nil && info.Size() > f.settings.MaxFileBytes {
		err = fmt.Errorf("%d bytes: %w", info.Size(), symbols.ErrTooLarge)
	}
	var image *symbols.Image
	if err == nil {
		image, err = symbols.Open(file, info.Size(), f.settings.Limits)
	}
	if err == nil && !m.IDs.IsEmpty() && !image.Matches(m.IDs) {
		err = ErrMismatch
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &Opened{Image: image, file: file}, nil
}

// search remembers the most specific error while candidates are tried.
type search struct{ err error }

// note keeps err, unless it only means that a candidate does not exist.
func (s *search) note(err error) {
	if s.err == nil || errors.Is(s.err, ErrNotFound) || errors.Is(s.err, fs.ErrPermission) && !errors.Is(err, ErrNotFound) {
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrNotFound
		}
		s.err = err
	}
}

func (s *search) result() error {
	if s.err == nil {
		return ErrNotFound
	}
	return s.err
}
