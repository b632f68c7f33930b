// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestoreexporter

import (
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/clickhouse"
)

// Config configures the exporter.
type Config struct {
	Server  ServerConfig  `mapstructure:"server"`
	Keep    KeepConfig    `mapstructure:"keep"`
	Storage StorageConfig `mapstructure:"storage"`
	// ClickHouse, if it is set, has the profiles in place of the exporter itself.
	ClickHouse configoptional.Optional[ClickHouseConfig] `mapstructure:"clickhouse"`

	MCP configoptional.Optional[MCPConfig] `mapstructure:"mcp"`
	// SourceLink is a template of the links from the page to source code. Empty: links to the repository that the profiles
	// name.
	SourceLink string `mapstructure:"source_link"`
}

// MCPConfig configures the answers to assistants, at /mcp of the server.
type MCPConfig struct {
	// DefaultTime is the time until now of a question that names no time; 0 is all that is kept.
	DefaultTime time.Duration `mapstructure:"default_time"`
}

// Validate reports everything that is wrong at once.
func (c *MCPConfig) Validate() error {
	var faults config.Faults
	faults.Require(c.DefaultTime >= 0, "`default_time` must not be negative, found %s", c.DefaultTime)
	return faults.Err()
}

// Validate reports sections that contradict each other.
func (c *Config) Validate() error {
	var faults config.Faults
	faults.Require(!c.ClickHouse.HasValue() || c.Storage.Directory == "",
		"`storage.directory` and `clickhouse` exclude each other")
	link, err := url.Parse(c.SourceLink)
	isLink := err == nil && (link.Scheme == "https" || link.Scheme == "http") && strings.Contains(c.SourceLink, "{file}")
	faults.Require(c.SourceLink == "" || isLink,
		"`source_link` must be a URL with {file}, such as https://git.example.com/shop/blob/{revision}/{file}#L{line}, found %q", c.SourceLink)
	return faults.Err()
}

// ClickHouseConfig configures the table that has the profiles.
type ClickHouseConfig struct {
	// Client is confighttp's; its endpoint is ClickHouse's port for HTTP.
	Client   confighttp.ClientConfig `mapstructure:",squash"`
	Database string                  `mapstructure:"database"`
	Table    string                  `mapstructure:"table"`
	Username string                  `mapstructure:"username"`
	Password configopaque.String     `mapstructure:"password"`
	// Window is the time until now that lists have, and of a query that names none.
	Window time.Duration `mapstructure:"window"`
	// MaxResultRows and MaxResultBytes bound the answer of ClickHouse to one statement; larger ones are refused.
	MaxResultRows  int `mapstructure:"max_result_rows"`
	MaxResultBytes int `mapstructure:"max_result_bytes"`
}

// Validate reports everything that is wrong at once.
func (c *ClickHouseConfig) Validate() error {
	var faults config.Faults
	endpoint, err := url.Parse(c.Client.Endpoint)
	isURL := err == nil && (endpoint.Scheme == "http" || endpoint.Scheme == "https") && endpoint.Host != "" &&
		endpoint.RawQuery == ""
	faults.Require(isURL,
		"`endpoint` must be the URL of ClickHouse's port for HTTP, such as http://localhost:8123, found %q",
		config.Shown(c.Client.Endpoint))
	for _, named := range [][2]string{{"database", c.Database}, {"table", c.Table}} {
		faults.Require(clickhouse.IsIdentifier(named[1]),
			"`%s` must be an identifier: 1 to 128 letters, digits and _, not a digit first, found %q", named[0], named[1])
	}
	faults.Require(c.Window >= time.Minute, "`window` must be at least 1m, found %s", c.Window)
	faults.Require(c.MaxResultRows >= 1, "`max_result_rows` must be positive, found %d", c.MaxResultRows)
	faults.Require(c.MaxResultBytes >= 1, "`max_result_bytes` must be positive, found %d", c.MaxResultBytes)
	return faults.Err()
}

// ServerConfig configures the page and the API.
type ServerConfig struct {
	HTTP confighttp.ServerConfig `mapstructure:",squash"`
	// AllowedHosts are host names that requests may use besides addresses and names without a dot.
	AllowedHosts []string `mapstructure:"allowed_hosts"`
	// MaxConcurrentQueries bounds the queries that are computed at once; others wait.
	MaxConcurrentQueries int `mapstructure:"max_concurrent_queries"`
	// QueryTimeout bounds a query, including the time that it waits.
	QueryTimeout time.Duration `mapstructure:"query_timeout"`
}

// KeepConfig bounds the profiles in memory.
type KeepConfig struct {
	Window     time.Duration `mapstructure:"window"`
	Resolution time.Duration `mapstructure:"resolution"`
	// MaxBytes is how much memory the exporter may add to the process, apart from queries under way.
	MaxBytes int `mapstructure:"max_bytes"`
	// MaxSeries bounds the number of series. 0 means no bound of its own: series count in MaxBytes.
	MaxSeries int `mapstructure:"max_series"`
}

// StorageConfig configures the directory in which profiles are kept for long.
type StorageConfig struct {
	// Directory is empty if profiles are kept in memory alone.
	Directory string        `mapstructure:"directory"`
	Retention time.Duration `mapstructure:"retention"`
	// MaxBytes bounds the blocks in the directory: the oldest are deleted first.
	MaxBytes int64 `mapstructure:"max_bytes"`
	// Downsample makes old days coarser.
	Downsample DownsampleConfig `mapstructure:"downsample"`
}

// DownsampleConfig is the rule by which days become coarser.
type DownsampleConfig struct {
	// After is the age of a day; 0 is never.
	After time.Duration `mapstructure:"after"`
	// Step is the interval for which a series then keeps one profile.
	Step time.Duration `mapstructure:"step"`
}

// Validate reports everything that is wrong at once.
func (c *StorageConfig) Validate() error {
	var faults config.Faults
	faults.Require(c.Retention >= time.Hour, "`retention` must be at least 1h, found %s", c.Retention)
	faults.Require(c.MaxBytes >= minStoredBytes, "`max_bytes` must be at least %d, found %d", minStoredBytes, c.MaxBytes)
	faults.Require(c.Downsample.After == 0 || c.Downsample.After >= time.Hour,
		"`downsample.after` must be 0 or at least 1h, found %s", c.Downsample.After)
	faults.Require(c.Downsample.Step >= time.Second && c.Downsample.Step <= time.Hour,
		"`downsample.step` must be from 1s to 1h, found %s", c.Downsample.Step)
	return faults.Err()
}

// Validate reports everything that is wrong at once.
func (c *ServerConfig) Validate() error {
	var faults config.Faults
	faults.Add(httpserver.CheckConfig(&c.HTTP))
	faults.Require(c.MaxConcurrentQueries >= 1, "`max_concurrent_queries` must be positive, found %d",
		c.MaxConcurrentQueries)
	faults.Require(c.QueryTimeout > 0, "`query_timeout` must be positive, found %s", c.QueryTimeout)
	return faults.Err()
}

const (
	minKeptBytes   = 1 << 20
	minStoredBytes = 64 << 20
	maxWindow      = 7 * 24 * time.Hour
)

// Validate reports everything that is wrong at once.
func (c *KeepConfig) Validate() error {
	var faults config.Faults
	faults.Require(c.Resolution >= time.Second && c.Resolution <= time.Hour,
		"`resolution` must be from 1s to 1h, found %s", c.Resolution)
	faults.Require(c.Window >= c.Resolution && c.Window <= maxWindow, "`window` must be from `resolution` to %s, found %s",
		maxWindow, c.Window)
	faults.Require(c.MaxBytes >= minKeptBytes, "`max_bytes` must be at least %d, found %d", minKeptBytes, c.MaxBytes)
	faults.Require(c.MaxSeries >= 0, "`max_series` must not be negative, found %d", c.MaxSeries)
	return faults.Err()
}
