// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processesreceiver

import (
	"regexp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver/internal/hotspot"
)

// Config configures the receiver.
type Config struct {
	// Interval is the time from one profile of a process to the next.
	Interval time.Duration `mapstructure:"interval"`
	// ProcRoot is where the machine's proc file system is mounted.
	ProcRoot string `mapstructure:"proc_root"`
	// Include lists the processes to read; all if it is empty. Exclude lists those that are not read.
	Include []Match `mapstructure:"include"`
	Exclude []Match `mapstructure:"exclude"`
	// MaxProcesses bounds the processes that are read.
	MaxProcesses int `mapstructure:"max_processes"`
	// Timeout bounds how long the pipeline may take for a profile.
	Timeout time.Duration `mapstructure:"timeout"`
	Go      GoConfig      `mapstructure:"go"`
	Java    JavaConfig    `mapstructure:"java"`
}

// Match matches processes by regular expressions. All that are set must match.
type Match struct {
	// Name is for the name of the executable's file.
	Name string `mapstructure:"name"`
	// CommandLine is for the arguments with spaces between them.
	CommandLine string `mapstructure:"command_line"`
	// Container is for the id of the container; a process outside of containers has an empty one.
	Container string `mapstructure:"container"`
}

// GoConfig configures the reading of Go programs.
type GoConfig struct {
	Enabled bool `mapstructure:"enabled"`
	// Profiles are memory, block and mutex.
	Profiles []string `mapstructure:"profiles"`
	// MaxBuckets bounds the stacks of a profile.
	MaxBuckets int `mapstructure:"max_buckets"`
}

// JavaConfig configures the recordings of JVMs.
type JavaConfig struct {
	Enabled          bool `mapstructure:"enabled"`
	hotspot.Settings `mapstructure:",squash"`
	// Timeout bounds each exchange with a JVM.
	Timeout time.Duration `mapstructure:"timeout"`
}

// check adds the faults.
func (c *JavaConfig) check(faults *config.Faults) {
	const leastRecording = 1 << 20 // Flight Recorder's own bound
	faults.Require(c.CPUPeriod >= time.Millisecond && c.CPUPeriod <= time.Minute,
		"`java::cpu_period` must be 1ms to 1m, found %v", c.CPUPeriod)
	faults.Require(c.AllocationsPerSecond > 0 && c.AllocationsPerSecond <= 1e6,
		"`java::allocations_per_second` must be 1 to 1000000, found %d", c.AllocationsPerSecond)
	faults.Require(c.WaitThreshold >= 0, "`java::wait_threshold` must not be negative, found %v", c.WaitThreshold)
	faults.Require(c.MaxRecordingBytes >= leastRecording && c.MaxRecordingBytes <= config.MaxBytes,
		"`java::max_recording_bytes` must be %d to %d, found %d", leastRecording, int64(config.MaxBytes), c.MaxRecordingBytes)
	faults.Require(c.Timeout > 0, "`java::timeout` must be positive, found %v", c.Timeout)
}

var goProfiles = []string{kind.Memory, kind.Block, kind.Mutex}

const (
	minInterval   = time.Second
	maxMatches    = 100
	mostBuckets   = 1 << 20
	mostProcesses = 100_000
)

// createDefaultConfig is the only place for defaults; a test compares the README with it.
func createDefaultConfig() component.Config {
	return &Config{
		Interval:     time.Minute,
		ProcRoot:     "/proc",
		Include:      []Match{},
		Exclude:      []Match{},
		MaxProcesses: 1000,
		Timeout:      30 * time.Second,
		Go:           GoConfig{Enabled: true, Profiles: slices.Clone(goProfiles), MaxBuckets: 65536},
		Java: JavaConfig{
			Enabled: true, Timeout: 10 * time.Second,
			Settings: hotspot.Settings{CPUPeriod: 50 * time.Millisecond, AllocationsPerSecond: 150,
				WaitThreshold: 10 * time.Millisecond, LiveObjects: true, MaxRecordingBytes: 32 << 20},
		},
	}
}

// Validate reports everything that is wrong at once.
func (c *Config) Validate() error {
	var faults config.Faults
	faults.Require(c.Interval >= minInterval, "`interval` must be at least %v, found %v", minInterval, c.Interval)
	faults.Require(c.ProcRoot != "", "`proc_root` must not be empty")
	faults.Require(c.MaxProcesses > 0 && c.MaxProcesses <= mostProcesses,
		"`max_processes` must be 1 to %d, found %d", mostProcesses, c.MaxProcesses)
	faults.Require(c.Timeout > 0, "`timeout` must be positive, found %v", c.Timeout)
	for key, matches := range map[string][]Match{"include": c.Include, "exclude": c.Exclude} {
		faults.Require(len(matches) <= maxMatches,
			"`%s` must have at most %d entries, found %d", key, maxMatches, len(matches))
		_, err := compile(matches)
		faults.Require(err == nil, "`%s` must have regular expressions: %w", key, err)
		faults.Require(!slices.Contains(matches, Match{}), "`%s` must not have an empty entry", key)
	}
	faults.Require(len(c.Go.Profiles) > 0 || !c.Go.Enabled, "`go::profiles` must not be empty")
	for _, name := range c.Go.Profiles {
		faults.Require(slices.Contains(goProfiles, name), "`go::profiles` must have only %q, found %q", goProfiles, name)
	}
	faults.Require(c.Go.MaxBuckets > 0 && c.Go.MaxBuckets <= mostBuckets,
		"`go::max_buckets` must be 1 to %d, found %d", mostBuckets, c.Go.MaxBuckets)
	c.Java.check(&faults)
	return faults.Err()
}

// matcher has the expressions of a Match: of the name, the command line and the container. An empty one matches all.
type matcher [3]*regexp.Regexp

func compile(list []Match) (matchers []matcher, err error) {
	for _, m := range list {
		var compiled matcher
		for i, expression := range []string{m.Name, m.CommandLine, m.Container} {
			if compiled[i], err = regexp.Compile(expression); err != nil {
				return nil, err
			}
		}
		matchers = append(matchers, compiled)
	}
	return matchers, nil
}

// filter selects processes.
type filter struct{ include, exclude []matcher }

func newFilter(c *Config) (f filter, err error) {
	if f.include, err = compile(c.Include); err != nil {
		return f, err
	}
	f.exclude, err = compile(c.Exclude)
	return f, err
}

func (f *filter) admits(name, commandLine, container string) bool {
	matches := func(m matcher) bool {
		return m[0].MatchString(name) && m[1].MatchString(commandLine) && m[2].MatchString(container)
	}
	return (len(f.include) == 0 || slices.ContainsFunc(f.include, matches)) && !slices.ContainsFunc(f.exclude, matches)
}
