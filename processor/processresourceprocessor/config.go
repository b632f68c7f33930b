// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor/internal/servicename"
)

// Config is the processor's configuration.
type Config struct {
	// By selects which samples share a resource.
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
	// MaxResources bounds the resources that are made within ResourceTTL. Processes of further ones share the service
	// `other`.
	MaxResources int `mapstructure:"max_resources"`
	// ResourceTTL is how long after its last sample a resource counts towards MaxResources. It has no key.
	ResourceTTL time.Duration `mapstructure:"-"`
	// Proc configures what is read of processes.
	Proc ProcConfig `mapstructure:"proc"`
}

// ProcConfig configures what is read of processes of this machine.
type ProcConfig struct {
	// Enabled allows the processor to read /proc: the samples must be of processes of this machine.
	Enabled bool `mapstructure:"enabled"`
	// Root is where the machine's proc file system is mounted.
	Root string `mapstructure:"root"`
	// ReadEnvironment allows the processor to read two variables of the environment.
	ReadEnvironment bool `mapstructure:"read_environment"`
	// EnvironmentAttributes are the attributes of the process context, and in OTEL_RESOURCE_ATTRIBUTES, that the resource
	// gets.
	EnvironmentAttributes []string `mapstructure:"environment_attributes"`

	// The bounds below have no keys; tests lower them.

	// MaxFileBytes bounds what is read of a file.
	MaxFileBytes int `mapstructure:"-"`
	// MaxProcesses bounds the processes that are remembered.
	MaxProcesses int `mapstructure:"-"`
	// RefreshInterval is the time after which a process is read again.
	RefreshInterval time.Duration `mapstructure:"-"`
	// MaxWait bounds how long a message waits for its processes to be read.
	MaxWait time.Duration `mapstructure:"-"`
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

// By selects which samples share a resource.
type By string

// There can be a resource for each of these.
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
	SourceContext     Source = "process_context"
	SourceEnvironment Source = "environment"
	SourceContainer   Source = "container"
	SourceSystemd     Source = "systemd"
	SourceRules       Source = "rules"
	SourceExecutable  Source = "executable"
)

var allSources = []Source{SourceSample, SourceContext, SourceEnvironment, SourceContainer, SourceSystemd, SourceRules,
	SourceExecutable}

// defaultContainerAttributes are in the order of the semantic conventions for service.name in Kubernetes.
var defaultContainerAttributes = []string{
	"k8s.deployment.name", "k8s.replicaset.name", "k8s.statefulset.name", "k8s.daemonset.name", "k8s.cronjob.name",
	"k8s.job.name", "k8s.pod.name", "k8s.container.name", "container.name",
}

const (
	maxAttributes = 16
	maxRules      = 100
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
	var faults config.Faults
	faults.Require(slices.Contains(allBy, c.By), "`by` must be one of %q, found %q", allBy, c.By)
	faults.Require(len(c.ServiceNameFrom) > 0, "`service_name_from` must not be empty")
	for i, source := range c.ServiceNameFrom {
		faults.Require(slices.Contains(allSources, source), "`service_name_from` must have only %q, found %q", allSources,
			source)
		faults.Require(!slices.Contains(c.ServiceNameFrom[:i], source),
			"`service_name_from` must be distinct, found %q twice", source)
	}
	faults.RequireKeys("container_attributes", c.ContainerAttributes)
	faults.RequireKeys("attributes", c.Attributes)
	faults.RequireKeys("proc.environment_attributes", c.Proc.EnvironmentAttributes)
	faults.Require(!slices.Contains(c.Attributes, "service.name"),
		"`attributes` must not have service.name, which moves if it is the name")
	faults.Require(len(c.Attributes) <= maxAttributes, "`attributes` must be at most %d, found %d", maxAttributes,
		len(c.Attributes))
	faults.Require(len(c.Rules) <= maxRules, "`rules` must be at most %d, found %d", maxRules, len(c.Rules))
	_, err := compile(c.Rules)
	faults.Add(err)
	faults.Require(c.MaxResources > 0, "`max_resources` must be positive, found %d", c.MaxResources)
	faults.Require(filepath.IsAbs(c.Proc.Root), "`proc.root` must be an absolute path, found %q", c.Proc.Root)
	return faults.Err()
}

// compile returns the rules with their expressions compiled.
func compile(rules []Rule) ([]servicename.Rule, error) {
	var faults config.Faults
	compiled := make([]servicename.Rule, len(rules))
	for i, rule := range rules {
		expression := func(key, pattern string) *regexp.Regexp {
			if pattern == "" {
				return nil
			}
			compiled, err := regexp.Compile(pattern)
			faults.Require(err == nil, "`rules[%d].%s` must be a regular expression: %w", i, key, err)
			return compiled
		}
		faults.Require(rule.ServiceName != "", "`rules[%d].service_name` must not be empty", i)
		faults.Require(rule.Executable != "" || rule.CommandLine != "",
			"`rules[%d]` must have `executable` or `command_line`", i)
		compiled[i] = servicename.Rule{
			Executable:  expression("executable", rule.Executable),
			CommandLine: expression("command_line", rule.CommandLine),
			Template:    rule.ServiceName,
		}
		if group := compiled[i].MissingGroup(); group != "" {
			faults.Add(fmt.Errorf("`rules[%d].service_name` must refer to groups of `command_line`, or else of `executable`,"+
				" found %q in %q (write $${1}x for the first group before a letter, digit or _)", i, group, rule.ServiceName))
		}
	}
	return compiled, faults.Err()
}
