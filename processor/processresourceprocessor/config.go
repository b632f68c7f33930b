// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/servicename"
)

// Config is the processor's configuration.
type Config struct {
	// By tells which samples share a resource.
	By By `mapstructure:"by"`
	// ServiceNameFrom are the sources of a service's name. The first that has one is used.
	ServiceNameFrom []Source `mapstructure:"service_name_from"`
	// ContainerAttributes are the attributes of a resource that name a container or what runs it, for SourceContainer.
	// The first that exists is used.
	ContainerAttributes []string `mapstructure:"container_attributes"`
	// Rules name processes, for SourceRules.
	Rules []Rule `mapstructure:"rules"`
	// Attributes are further sample attributes that move to the resource. Their values become part of its identity.
	Attributes []string `mapstructure:"attributes"`
	// MaxResources bounds the resources that are made within ResourceTTL. Further ones share the service `other`.
	MaxResources int `mapstructure:"max_resources"`
	// ResourceTTL is how long after its last sample a resource counts towards MaxResources.
	ResourceTTL time.Duration `mapstructure:"resource_ttl"`
	// Proc configures what is read of processes.
	Proc ProcConfig `mapstructure:"proc"`
}

// ProcConfig configures what is read of processes of this machine.
type ProcConfig struct {
	// Enabled allows to read /proc: the samples must be of processes of this machine.
	Enabled bool `mapstructure:"enabled"`
	// Root is where the machine's proc file system is mounted.
	Root string `mapstructure:"root"`
	// ReadEnvironment allows to read two variables of the environment.
	ReadEnvironment bool `mapstructure:"read_environment"`
	// EnvironmentAttributes are the attributes in OTEL_RESOURCE_ATTRIBUTES that the resource gets.
	EnvironmentAttributes []string `mapstructure:"environment_attributes"`
	// MaxFileBytes bounds what is read of a file.
	MaxFileBytes int `mapstructure:"max_file_bytes"`
	// MaxProcesses bounds the processes that are remembered.
	MaxProcesses int `mapstructure:"max_processes"`
	// RefreshInterval is how long a process is not read again.
	RefreshInterval time.Duration `mapstructure:"refresh_interval"`
	// MaxWait bounds how long a message waits for its processes to be read.
	MaxWait time.Duration `mapstructure:"max_wait"`
}

// Rule names the processes that match.
type Rule struct {
	// Executable is a regular expression for the executable's name.
	Executable string `mapstructure:"executable"`
	// CommandLine is a regular expression for the arguments with spaces between them.
	CommandLine string `mapstructure:"command_line"`
	// ServiceName is the name, with $1 or ${name} for groups of CommandLine, or of Executable if there is no CommandLine.
	ServiceName string `mapstructure:"service_name"`
}

// By tells which samples share a resource.
type By string

// What a resource can stand for.
const (
	ByExecutable By = "executable"
	ByProcess    By = "process"
	ByContainer  By = "container"
)

var allBy = []By{ByExecutable, ByProcess, ByContainer}

// Source is where a service's name comes from.
type Source string

// The sources, in their default order.
const (
	SourceSample      Source = "sample"
	SourceEnvironment Source = "environment"
	SourceContainer   Source = "container"
	SourceSystemd     Source = "systemd"
	SourceRules       Source = "rules"
	SourceExecutable  Source = "executable"
)

var allSources = []Source{SourceSample, SourceEnvironment, SourceContainer, SourceSystemd, SourceRules, SourceExecutable}

// The order for Kubernetes is that of the semantic conventions for service.name.
var defaultContainerAttributes = []string{
	"k8s.deployment.name", "k8s.replicaset.name", "k8s.statefulset.name", "k8s.daemonset.name", "k8s.cronjob.name",
	"k8s.job.name", "k8s.pod.name", "k8s.container.name", "container.name",
}

const (
	minMaxFileBytes = 4 << 10
	minMaxProcesses = 16
	maxAttributes   = 16
	maxRules        = 100
)

func createDefaultConfig() component.Config {
	return &Config{
		By:                  ByExecutable,
		ServiceNameFrom:     slices.Clone(allSources),
		ContainerAttributes: slices.Clone(defaultContainerAttributes),
		Rules:               []Rule{},
		Attributes:          []string{},
		MaxResources:        1000,
		ResourceTTL:         time.Hour,
		Proc: ProcConfig{
			Enabled:               true,
			Root:                  "/proc",
			EnvironmentAttributes: []string{"service.namespace", "service.version", "deployment.environment.name"},
			MaxFileBytes:          128 << 10,
			MaxProcesses:          10_000,
			RefreshInterval:       30 * time.Second,
			MaxWait:               time.Second,
		},
	}
}

// Validate reports everything that is wrong at once.
func (c *Config) Validate() error {
	var errs []error
	if !slices.Contains(allBy, c.By) {
		errs = append(errs, fmt.Errorf("`by` must be one of %q, found %q", allBy, c.By))
	}
	if len(c.ServiceNameFrom) == 0 {
		errs = append(errs, errors.New("`service_name_from` must not be empty"))
	}
	for i, source := range c.ServiceNameFrom {
		if !slices.Contains(allSources, source) {
			errs = append(errs, fmt.Errorf("`service_name_from` must have only %q, found %q", allSources, source))
		}
		if slices.Contains(c.ServiceNameFrom[:i], source) {
			errs = append(errs, fmt.Errorf("`service_name_from` must be distinct, found %q twice", source))
		}
	}
	errs = append(errs, validateKeys("container_attributes", c.ContainerAttributes), validateKeys("attributes", c.Attributes),
		validateKeys("proc::environment_attributes", c.Proc.EnvironmentAttributes))
	if slices.Contains(c.Attributes, "service.name") {
		errs = append(errs, errors.New("`attributes` must not have service.name, which moves where it is the name"))
	}
	if len(c.Attributes) > maxAttributes {
		errs = append(errs, fmt.Errorf("`attributes` must be at most %d, found %d", maxAttributes, len(c.Attributes)))
	}
	if len(c.Rules) > maxRules {
		errs = append(errs, fmt.Errorf("`rules` must be at most %d, found %d", maxRules, len(c.Rules)))
	}
	if _, err := compile(c.Rules); err != nil {
		errs = append(errs, err)
	}
	if c.MaxResources <= 0 {
		errs = append(errs, fmt.Errorf("`max_resources` must be positive, found %d", c.MaxResources))
	}
	if c.ResourceTTL <= 0 {
		errs = append(errs, fmt.Errorf("`resource_ttl` must be positive, found %s", c.ResourceTTL))
	}
	return errors.Join(append(errs, c.Proc.validate()...)...)
}

func (c *ProcConfig) validate() (errs []error) {
	if !filepath.IsAbs(c.Root) {
		errs = append(errs, fmt.Errorf("`proc::root` must be an absolute path, found %q", c.Root))
	}
	if c.MaxFileBytes < minMaxFileBytes {
		errs = append(errs, fmt.Errorf("`proc::max_file_bytes` must be at least %d, found %d", minMaxFileBytes, c.MaxFileBytes))
	}
	if c.MaxProcesses < minMaxProcesses {
		errs = append(errs, fmt.Errorf("`proc::max_processes` must be at least %d, found %d", minMaxProcesses, c.MaxProcesses))
	}
	if c.RefreshInterval < 0 {
		errs = append(errs, fmt.Errorf("`proc::refresh_interval` must not be negative, found %s", c.RefreshInterval))
	}
	if c.MaxWait <= 0 {
		errs = append(errs, fmt.Errorf("`proc::max_wait` must be positive, found %s", c.MaxWait))
	}
	return errs
}

func validateKeys(name string, keys []string) error {
	for i, key := range keys {
		if key == "" {
			return fmt.Errorf("`%s` must not have an empty entry", name)
		}
		if slices.Contains(keys[:i], key) {
			return fmt.Errorf("`%s` must be distinct, found %q twice", name, key)
		}
	}
	return nil
}

// compile returns the rules with their expressions compiled.
func compile(rules []Rule) ([]servicename.Rule, error) {
	var errs []error
	compiled := make([]servicename.Rule, len(rules))
	for i, rule := range rules {
		if rule.ServiceName == "" {
			errs = append(errs, fmt.Errorf("`rules[%d]::service_name` must not be empty", i))
		}
		if rule.Executable == "" && rule.CommandLine == "" {
			errs = append(errs, fmt.Errorf("`rules[%d]` must have `executable` or `command_line`", i))
		}
		compiled[i].Template = rule.ServiceName
		for _, expression := range []struct {
			key, text string
			to        **regexp.Regexp
		}{{"executable", rule.Executable, &compiled[i].Executable}, {"command_line", rule.CommandLine, &compiled[i].CommandLine}} {
			if expression.text == "" {
				continue
			}
			var err error
			if *expression.to, err = regexp.Compile(expression.text); err != nil {
				errs = append(errs, fmt.Errorf("`rules[%d]::%s` must be a regular expression: %w", i, expression.key, err))
			}
		}
	}
	return compiled, errors.Join(errs...)
}
