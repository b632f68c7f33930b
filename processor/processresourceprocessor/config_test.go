// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processresourceprocessor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"`by` must be one of":                   func(c *Config) { c.By = "thread" },
		"`service_name_from` must not be empty": func(c *Config) { c.ServiceNameFrom = nil },
		"`service_name_from` must have only":    func(c *Config) { c.ServiceNameFrom = []Source{"guess"} },
		"`service_name_from` must be distinct": func(c *Config) {
			c.ServiceNameFrom = []Source{SourceSample, SourceSample}
		},
		"`container_attributes` must not have an empty entry": func(c *Config) { c.ContainerAttributes = []string{""} },
		"`attributes` must be distinct, found \"a\" twice":    func(c *Config) { c.Attributes = []string{"a", "b", "a"} },
		"`attributes` must not have service.name":             func(c *Config) { c.Attributes = []string{"service.name"} },
		"`attributes` must be at most 16, found 17":           func(c *Config) { c.Attributes = numbered(17) },
		"`rules` must be at most 100, found 101":              func(c *Config) { c.Rules = make([]Rule, 101) },
		"`rules[0].service_name` must not be empty":           func(c *Config) { c.Rules = []Rule{{Executable: "a"}} },
		"`rules[0]` must have `executable` or `command_line`": func(c *Config) { c.Rules = []Rule{{ServiceName: "a"}} },
		"`rules[0].executable` must be a regular expression": func(c *Config) {
			c.Rules = []Rule{{Executable: "(", ServiceName: "a"}}
		},
		"`rules[0].command_line` must be a regular expression": func(c *Config) {
			c.Rules = []Rule{{CommandLine: "(", ServiceName: "a"}}
		},
		"`rules[0].service_name` must refer to groups of `command_line`, or else of `executable`, found \"$2\" in \"a-$2\"": func(c *Config) {
			c.Rules = []Rule{{Executable: "(a)", ServiceName: "a-$2"}}
		},
		"found \"$1_x\" in \"$1_x\"": func(c *Config) { c.Rules = []Rule{{Executable: "(a)", ServiceName: "$1_x"}} },
		"found \"${app}\" in \"$1-${app}\"": func(c *Config) {
			c.Rules = []Rule{{Executable: "(?P<app>a)", CommandLine: "(a)", ServiceName: "$1-${app}"}}
		},
		"`max_resources` must be positive, found 0":            func(c *Config) { c.MaxResources = 0 },
		"`proc.root` must be an absolute path, found \"proc\"": func(c *Config) { c.Proc.Root = "proc" },
		"`proc.environment_attributes` must not have an empty": func(c *Config) {
			c.Proc.EnvironmentAttributes = []string{""}
		},
	} {
		c := createDefaultConfig().(*Config)
		change(c)
		assert.ErrorContains(t, c.Validate(), want)
	}
	c := &Config{}
	assert.ErrorContains(t, c.Validate(), "`max_resources`")
	assert.ErrorContains(t, c.Validate(), "`proc.root`", "all faults at once")
}

func numbered(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint("key", i))
	}
	return keys
}

func TestUnmarshal(t *testing.T) {
	c := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"by":                "process",
		"service_name_from": []any{"rules", "executable"},
		"rules": []any{map[string]any{"executable": "^beam", "command_line": `-sname (\S+)`,
			"service_name": "erlang-$1"}},
		"proc": map[string]any{"root": "/host/proc", "read_environment": true},
	}).Unmarshal(c))
	require.NoError(t, c.Validate())
	assert.Equal(t, ByProcess, c.By)
	assert.Equal(t, []Source{SourceRules, SourceExecutable}, c.ServiceNameFrom)
	assert.Equal(t, []Rule{{Executable: "^beam", CommandLine: `-sname (\S+)`, ServiceName: "erlang-$1"}}, c.Rules)
	assert.Equal(t, "/host/proc", c.Proc.Root)
	assert.True(t, c.Proc.Enabled && c.Proc.ReadEnvironment)
}
