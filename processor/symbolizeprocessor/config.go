// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
)

// Config is the processor's configuration.
type Config struct {
	// MaxWait is how long a message waits for lookups that are not ready. 0: it never waits.
	MaxWait time.Duration `mapstructure:"max_wait"`
	// Lines adds inlined calls, files and line numbers, also from DWARF.
	Lines bool `mapstructure:"lines"`
	// Demangle is how much of a demangled name is kept.
	Demangle symbols.DemangleStyle `mapstructure:"demangle"`

	Files FilesConfig `mapstructure:"files"`
	// DebugDirectories have debug files below .build-id.
	DebugDirectories []string         `mapstructure:"debug_directories"`
	Debuginfod       DebuginfodConfig `mapstructure:"debuginfod"`
	Uploads          UploadsConfig    `mapstructure:"uploads"`

	// Workers is how many lookups run at the same time.
	Workers int `mapstructure:"workers"`
	// QueueSize is how many files may wait for a worker.
	QueueSize int `mapstructure:"queue_size"`
	// MaxModules is how many files are remembered.
	MaxModules int `mapstructure:"max_modules"`
	// MaxPendingAddresses is how many addresses of one file may wait.
	MaxPendingAddresses int `mapstructure:"max_pending_addresses"`
	// CacheBytes bounds the cache of addresses.
	CacheBytes int64 `mapstructure:"cache_bytes"`
	// MaxFileBytes bounds the size of a file that is opened.
	MaxFileBytes int64 `mapstructure:"max_file_bytes"`
	// MaxTableBytes bounds what is kept in memory of one file.
	MaxTableBytes int64 `mapstructure:"max_table_bytes"`
	// MaxWorkBytes bounds how many bytes of tables one lookup looks at.
	MaxWorkBytes int64 `mapstructure:"max_work_bytes"`
	// MaxOpenFiles and MaxOpenBytes bound the files that are held open between lookups, and their tables.
	MaxOpenFiles int   `mapstructure:"max_open_files"`
	MaxOpenBytes int64 `mapstructure:"max_open_bytes"`
	// KeepOpen is for how long a file is held open after its last lookup.
	KeepOpen time.Duration `mapstructure:"keep_open"`
	// RetryInterval is the time after which a file without symbols is looked for again.
	RetryInterval time.Duration `mapstructure:"retry_interval"`
	// ReportInterval is how often the log lists files without symbols. 0: never.
	ReportInterval time.Duration `mapstructure:"report_interval"`
}

// FilesConfig configures the use of the mapped files themselves.
type FilesConfig struct {
	Enabled bool `mapstructure:"enabled"`
	// Roots are folders below which the paths of mappings are looked for, in addition to the root of the file system.
	Roots []string `mapstructure:"roots"`
	// ProcPath is where the host's /proc is.
	ProcPath string `mapstructure:"proc_path"`
	// WithoutBuildID uses the file at a mapping's path if the mapping has no build id.
	WithoutBuildID bool `mapstructure:"without_build_id"`
}

// DebuginfodConfig configures debuginfod servers. Without any, nothing is requested or stored.
type DebuginfodConfig struct {
	Servers []string `mapstructure:"servers"`
	// HTTP configures the client; its endpoint is not used.
	HTTP            confighttp.ClientConfig `mapstructure:"http"`
	CacheDirectory  string                  `mapstructure:"cache_directory"`
	MaxCacheBytes   int64                   `mapstructure:"max_cache_bytes"`
	MaxFileBytes    int64                   `mapstructure:"max_file_bytes"`
	MissingInterval time.Duration           `mapstructure:"missing_interval"`
	InitialBackoff  time.Duration           `mapstructure:"initial_backoff"`
	MaxBackoff      time.Duration           `mapstructure:"max_backoff"`
}

// UploadsConfig configures a directory of programs and debug files.
type UploadsConfig struct {
	Directory       string        `mapstructure:"directory"`
	RefreshInterval time.Duration `mapstructure:"refresh_interval"`
}

func createDefaultConfig() component.Config {
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 2 * time.Minute
	return &Config{
		Demangle:         symbols.DemangleFull,
		Files:            FilesConfig{Enabled: true, Roots: []string{}, ProcPath: "/proc"},
		DebugDirectories: []string{"/usr/lib/debug"},
		Debuginfod: DebuginfodConfig{
			Servers:         []string{},
			HTTP:            client,
			MaxCacheBytes:   4 << 30,
			MaxFileBytes:    1 << 30,
			MissingInterval: time.Hour,
			InitialBackoff:  time.Second,
			MaxBackoff:      5 * time.Minute,
		},
		Uploads:             UploadsConfig{RefreshInterval: 30 * time.Second},
		Workers:             2,
		QueueSize:           1024,
		MaxModules:          4096,
		MaxPendingAddresses: 16384,
		CacheBytes:          64 << 20,
		MaxFileBytes:        8 << 30,
		MaxTableBytes:       symbols.DefaultLimits.TableBytes,
		MaxWorkBytes:        symbols.DefaultLimits.Work,
		MaxOpenFiles:        64,
		MaxOpenBytes:        128 << 20,
		KeepOpen:            time.Minute,
		RetryInterval:       5 * time.Minute,
		ReportInterval:      10 * time.Minute,
	}
}

// Validate reports everything that is wrong at once.
func (c *Config) Validate() error {
	var errs []error
	switch c.Demangle {
	case symbols.DemangleFull, symbols.DemangleTemplates, symbols.DemangleSimple, symbols.DemangleNone:
	default:
		errs = append(errs, fmt.Errorf("`demangle` must be full, templates, simple or none, found %q", c.Demangle))
	}
	for _, bound := range []struct {
		key   string
		value int64
		least int64
	}{
		{"max_wait", int64(c.MaxWait), 0},
		{"workers", int64(c.Workers), 1},
		{"queue_size", int64(c.QueueSize), 1},
		{"max_modules", int64(c.MaxModules), 1},
		{"max_pending_addresses", int64(c.MaxPendingAddresses), 1},
		{"cache_bytes", c.CacheBytes, 1 << 20},
		{"max_file_bytes", c.MaxFileBytes, 1},
		{"max_table_bytes", c.MaxTableBytes, 1 << 20},
		{"max_work_bytes", c.MaxWorkBytes, 1 << 20},
		{"max_open_files", int64(c.MaxOpenFiles), 0},
		{"max_open_bytes", c.MaxOpenBytes, 0},
		{"keep_open", int64(c.KeepOpen), int64(time.Second)},
		{"retry_interval", int64(c.RetryInterval), int64(time.Second)},
		{"report_interval", int64(c.ReportInterval), 0},
		{"uploads.refresh_interval", int64(c.Uploads.RefreshInterval), int64(time.Second)},
		{"debuginfod.max_cache_bytes", c.Debuginfod.MaxCacheBytes, 1 << 20},
		{"debuginfod.max_file_bytes", c.Debuginfod.MaxFileBytes, 1 << 20},
		{"debuginfod.missing_interval", int64(c.Debuginfod.MissingInterval), int64(time.Second)},
		{"debuginfod.initial_backoff", int64(c.Debuginfod.InitialBackoff), int64(time.Millisecond)},
		{"debuginfod.max_backoff", int64(c.Debuginfod.MaxBackoff), int64(c.Debuginfod.InitialBackoff)},
	} {
		if bound.value < bound.least {
			errs = append(errs, fmt.Errorf("`%s` must be at least %s, found %s",
				bound.key, inUnits(bound.key, bound.least), inUnits(bound.key, bound.value)))
		}
	}
	errs = append(errs, c.validatePaths()...)
	return errors.Join(errs...)
}

// inUnits returns a bound in the units of its key.
func inUnits(key string, value int64) string {
	switch key {
	case "max_wait", "keep_open", "retry_interval", "report_interval", "uploads.refresh_interval", "debuginfod.missing_interval",
		"debuginfod.initial_backoff", "debuginfod.max_backoff":
		return time.Duration(value).String()
	}
	return fmt.Sprint(value)
}

func (c *Config) validatePaths() (errs []error) {
	absolute := func(key string, paths ...string) {
		for _, p := range paths {
			if !filepath.IsAbs(p) {
				errs = append(errs, fmt.Errorf("`%s` must be an absolute path, found %q", key, p))
			}
		}
	}
	absolute("files.roots", c.Files.Roots...)
	absolute("files.proc_path", c.Files.ProcPath)
	absolute("debug_directories", c.DebugDirectories...)
	if c.Uploads.Directory != "" {
		absolute("uploads.directory", c.Uploads.Directory)
	}
	d := &c.Debuginfod
	for _, server := range d.Servers {
		if u, err := url.Parse(server); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			errs = append(errs, errors.New("`debuginfod.servers` must be URLs with http:// or https:// and a host"))
		}
	}
	if len(d.Servers) > 0 && d.CacheDirectory == "" {
		errs = append(errs, errors.New("`debuginfod.cache_directory` must be set if there are `debuginfod.servers`"))
	}
	if d.CacheDirectory != "" {
		absolute("debuginfod.cache_directory", d.CacheDirectory)
	}
	if d.HTTP.Endpoint != "" {
		errs = append(errs, errors.New("`debuginfod.http.endpoint` is not used: the servers are in `debuginfod.servers`"))
	}
	return errs
}
