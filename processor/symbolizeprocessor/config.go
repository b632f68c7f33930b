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

	Lookup  lookup.Config  `mapstructure:",squash"`
	Sources sources.Config `mapstructure:",squash"`
}

func createDefaultConfig() component.Config {
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 2 * time.Minute
	return &Config{
		Lookup: lookup.Config{
			Demangle:            symbols.DemangleFull,
			Workers:             2,
			QueueSize:           1024,
			MaxModules:          4096,
			MaxPendingAddresses: 16384,
			CacheBytes:          64 << 20,
			MaxOpenFiles:        64,
			KeepOpen:            time.Minute,
			RetryInterval:       5 * time.Minute,
		},
		Sources: sources.Config{
			Files:            sources.FilesConfig{Enabled: true, Roots: []string{}, ProcPath: "/proc"},
			DebugDirectories: []string{"/usr/lib/debug"},
			Debuginfod: sources.DebuginfodConfig{
				Servers:        []string{},
				HTTP:           client,
				MaxCacheBytes:  4 << 30,
				InitialBackoff: time.Second,
				MaxBackoff:     5 * time.Minute,
			},
			Uploads: sources.UploadsConfig{RefreshInterval: 30 * time.Second},
			Limits:  symbols.DefaultLimits,
		},
	}
}

// Validate reports everything that is wrong at once.
func (c *Config) Validate() error {
	l, s := &c.Lookup, &c.Sources
	var faults config.Faults
	switch l.Demangle {
	case symbols.DemangleFull, symbols.DemangleTemplates, symbols.DemangleSimple, symbols.DemangleNone:
	default:
		faults.Add(fmt.Errorf("`demangle` must be full, templates, simple or none, found %q", l.Demangle))
	}
	faults.Require(c.MaxWait >= 0, "`max_wait` must not be negative, found %s", c.MaxWait)
	faults.Require(l.CacheBytes >= 1<<20, "`cache_bytes` must be at least %d, found %d", 1<<20, l.CacheBytes)
	faults.Require(s.Debuginfod.MaxCacheBytes >= 1<<20,
		"`debuginfod.max_cache_bytes` must be at least %d, found %d", 1<<20, s.Debuginfod.MaxCacheBytes)
	requirePaths(&faults, s)
	return faults.Err()
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
	faults.Require(d.HTTP.Endpoint == "",
		"`debuginfod.http.endpoint` is not used: the servers are in `debuginfod.servers`")
}
