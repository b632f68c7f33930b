// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
)

// Kind is a source of symbols: the value of an attribute and of a metric's attribute.
type Kind int

// The sources, in the order in which they are tried.
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
	// Path is the mapping's filename: a path as the process saw it, or only a name.
	Path string
	// PIDs are processes that are known to have it mapped.
	PIDs []int64
}

// Errors of a search. Other errors are those of package symbols and of the system.
var (
	// ErrNotFound is returned if a source has no file for the module.
	ErrNotFound = errors.New("not found")
	// ErrNotDownloaded is returned if a debuginfod server may have the file: Download asks them.
	ErrNotDownloaded = errors.New("not downloaded yet")
	// ErrMismatch is returned if there is a file of the module's name, but of another build.
	ErrMismatch = errors.New("build id differs")
	// ErrNoBuildID is returned for a mapping without a build id: the file at its path could be another one.
	ErrNoBuildID = errors.New("mapping without a build id")
)

// Config configures the sources.
type Config struct {
	Files FilesConfig `mapstructure:"files"`
	// DebugDirectories have debug files below .build-id.
	DebugDirectories []string         `mapstructure:"debug_directories"`
	Debuginfod       DebuginfodConfig `mapstructure:"debuginfod"`
	Uploads          UploadsConfig    `mapstructure:"uploads"`

	// The bounds below, and those of Uploads and Debuginfod, have no keys; tests lower them.

	// Limits are those of each file.
	Limits symbols.Limits `mapstructure:"-"`
}

// FilesConfig configures the use of the mapped files themselves.
type FilesConfig struct {
	Enabled bool `mapstructure:"enabled"`
	// Roots are directories below which the paths of mappings are searched, in addition to the root of the file system.
	Roots []string `mapstructure:"roots"`
	// ProcPath is where the host's /proc is.
	ProcPath string `mapstructure:"proc_path"`
	// WithoutBuildID uses the file at a mapping's path if the mapping has no build id.
	WithoutBuildID bool `mapstructure:"without_build_id"`
}

// UploadsConfig configures a directory of programs and debug files. Without a directory, the source is off.
type UploadsConfig struct {
	Directory string `mapstructure:"directory"`
	// RefreshInterval is how often the directory is read again, at most.
	RefreshInterval time.Duration `mapstructure:"-"`
}

// DebuginfodConfig configures debuginfod servers and their cache on disk. Without servers, nothing is requested or
// stored.
type DebuginfodConfig struct {
	Servers []string `mapstructure:"servers"`
	// HTTP configures the client; its endpoint is not used.
	HTTP           confighttp.ClientConfig `mapstructure:"http"`
	CacheDirectory string                  `mapstructure:"cache_directory"`
	MaxCacheBytes  int64                   `mapstructure:"max_cache_bytes"`
	// InitialBackoff and MaxBackoff bound how long a server is not used after it failed.
	InitialBackoff time.Duration `mapstructure:"-"`
	MaxBackoff     time.Duration `mapstructure:"-"`
}

// Finder finds files. It is safe for concurrent use.
type Finder struct {
	config     Config
	debuginfod *debuginfod
	uploads    *uploads
}

// NewFinder returns a Finder. It lists the cache of debuginfod, and opens no file yet. The client sends the requests to
// debuginfod servers; observe is called with each.
func NewFinder(config Config, client *http.Client, observe func(Request)) *Finder {
	f := &Finder{config: config}
	if len(config.Debuginfod.Servers) > 0 {
		f.debuginfod = newDebuginfod(config.Debuginfod, client, observe)
	}
	if config.Uploads.Directory != "" {
		f.uploads = &uploads{finder: f, config: config.Uploads}
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

// SymbolFile is an open file with symbols. Close ends its use.
type SymbolFile struct {
	*symbols.Image
	// FunctionsOnly reports that lines were too much work: they are not looked up again while the file is open.
	FunctionsOnly bool

	file *os.File
}

// Close closes the file.
func (f *SymbolFile) Close() { _ = f.file.Close() }

// Open opens the file of one source, without network. The error is ErrNotFound if there is none.
func (f *Finder) Open(kind Kind, m Module) (*SymbolFile, error) {
	switch kind {
	case File:
		return f.openMapped(m)
	case DebugDirectory:
		return f.openDebugFile(m)
	case Debuginfod:
		return f.openDebuginfod(m)
	default:
		return f.openUpload(m)
	}
}

// search tries candidates for the file of a module, and remembers their most specific error.
type search struct {
	finder *Finder
	module Module
	err    error
}

func (f *Finder) search(m Module) *search { return &search{finder: f, module: m} }

// try returns a SymbolFile if a candidate could be opened and has the build ids of the module, otherwise nil. Its
// arguments are what openFile returned.
func (s *search) try(file *os.File, err error) *SymbolFile {
	if err != nil {
		s.note(err)
		return nil
	}
	image, err := s.check(file)
	if err != nil {
		_ = file.Close()
		s.note(err)
		return nil
	}
	return &SymbolFile{Image: image, file: file}
}

// maxFileBytes bounds the size of a file that is opened.
const maxFileBytes = 8 << 30

func (s *search) check(file *os.File) (*symbols.Image, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("%d bytes: %w", info.Size(), symbols.ErrTooLarge)
	}
	image, err := symbols.Open(file, info.Size(), s.finder.config.Limits)
	if err == nil && !s.module.IDs.IsEmpty() && !image.Matches(s.module.IDs) {
		err = ErrMismatch
	}
	return image, err
}

// note keeps err, unless it only means that a candidate does not exist.
func (s *search) note(err error) {
	if s.err == nil || errors.Is(s.err, ErrNotFound) || errors.Is(s.err, fs.ErrPermission) &&
		!errors.Is(err, ErrNotFound) {
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
