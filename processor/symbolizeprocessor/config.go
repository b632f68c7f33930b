// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"fmt"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbols"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/lookup"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

// Config is the processor's configuration.
type Config struct {
	// MaxWait is how long a message waits for lookups that are not ready; 0 means not at all.
	MaxWait time.Duration `mapstructure:"max_wait"`
	// ReportInterval is how often the log lists files without symbols; 0 means never.
	ReportInterval time.Duration `mapstructure:"report_interval"`

	Lookup  lookup.Config  `mapstructure:",squash"`
	Sources sources.Config `mapstructure:",squash"`
}

func createDefaultConfig() component.Config {
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 2 * time.Minute
	return &Config{
		ReportInterval: 10 * time.Minute,
		Lookup: lookup.Config{
			Demangle:            symbols.DemangleFull,
			Workers:             2,
			QueueSize:           1024,
			MaxModules:          4096,
			MaxPendingAddresses: 16384,
			CacheBytes:          64 << 20,
			MaxOpenFiles:        64,
			MaxOpenBytes:        128 << 20,
			KeepOpen:            time.Minute,
			RetryInterval:       5 * time.Minute,
		},
		Sources: sources.Config{
			Files:            sources.FilesConfig{Enabled: true, Roots: []string{}, ProcPath: "/proc"},
			DebugDirectories: []string{"/usr/lib/debug"},
			Debuginfod: sources.DebuginfodConfig{
				Servers:         []string{},
				HTTP:            client,
				MaxCacheBytes:   4 << 30,
				MaxFileBytes:    1 << 30,
				MissingInterval: time.Hour,
				InitialBackoff:  time.Second,
				MaxBackoff:      5 * time.Minute,
			},
			Uploads:       sources.UploadsConfig{RefreshInterval: 30 * time.Second},
			MaxFileBytes:  8 << 30,
			MaxTableBytes: symbols.DefaultLimits.TableBytes,
			MaxWorkBytes:  symbols.DefaultLimits.Work,
		},
	}
}

// Validate reports everything that is wrong at once.
func (c *Config) Validate() error {
	l, s, d := &c.Lookup, &c.Sources, &c.Sources.Debuginfod
	var faults config.Faults
	switch l.Demangle {
	case symbols.DemangleFull, symbols.DemangleTemplates, symbols.DemangleSimple, symbols.DemangleNone:
	default:
		faults.Add(fmt.Errorf("`demangle` must be full, templates, simple or none, found %q", l.Demangle))
	}
	for _, err := range []error{
		atLeast("max_wait", c.MaxWait, 0),
		atLeast("report_interval", c.ReportInterval, 0),
		atLeast("workers", l.Workers, 1),
		atLeast("queue_size", l.QueueSize, 1),
		atLeast("max_modules", l.MaxModules, 1),
		atLeast("max_pending_addresses", l.MaxPendingAddresses, 1),
		atLeast("cache_bytes", l.CacheBytes, 1<<20),
		atLeast("max_open_files", l.MaxOpenFiles, 0),
		atLeast("max_open_bytes", l.MaxOpenBytes, 0),
		atLeast("keep_open", l.KeepOpen, time.Second),
		atLeast("retry_interval", l.RetryInterval, time.Second),
		atLeast("max_file_bytes", s.MaxFileBytes, 1),
		atLeast("max_table_bytes", s.MaxTableBytes, 1<<20),
		atLeast("max_work_bytes", s.MaxWorkBytes, 1<<20),
		atLeast("uploads.refresh_interval", s.Uploads.RefreshInterval, time.Second),
		atLeast("debuginfod.max_cache_bytes", d.MaxCacheBytes, 1<<20),
		atLeast("debuginfod.max_file_bytes", d.MaxFileBytes, 1<<20),
		atLeast("debuginfod.missing_interval", d.MissingInterval, time.Second),
		atLeast("debuginfod.initial_backoff", d.InitialBackoff, time.Millisecond),
		atLeast("debuginfod.max_backoff", d.MaxBackoff, d.InitialBackoff),
	} {
		faults.Add(err)
	}
	requirePaths(&faults, s)
	return faults.Err()
}

func atLeast[T int | int64 | time.Duration](key string, value, least T) error {
	if value < least {
		return fmt.Errorf("`%s` must be at least %v, found %v", key, least, value)
	}
	return nil
}

func requirePaths(faults *config.Faults, c *sources.Config) {
	absolute := func(key string, paths ...string) {
		for _, p := range paths {
			faults.Require(filepath.IsAbs(p), "`%s` must be an absolute path, found %q", key, p)
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
		faults.RequireURL("debuginfod.servers", server)
	}
	faults.Require(len(d.Servers) == 0 || d.CacheDirectory != "",
		"`debuginfod.cache_directory` must be set if there are `debuginfod.servers`")
	if d.CacheDirectory != "" {
		absolute("debuginfod.cache_directory", d.CacheDirectory)
	}
	faults.Require(d.HTTP.Endpoint == "", "`debuginfod.http.endpoint` is not used: the servers are in `debuginfod.servers`")
}
