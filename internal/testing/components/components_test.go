// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const (
	root   = "../../.."
	module = "github.com/otelcol-profiles/otelcol-profiles/"
)

// TestMain fails if a component that was shut down leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// metadata is what a component's metadata.yaml promises.
type metadata struct {
	Type   string
	Status struct {
		Class     string
		Stability map[string][]string
	}
	Telemetry struct{ Metrics map[string]any }
	Tests     struct {
		// Config is the configuration that the component is started with here, where its defaults do not do.
		Config map[string]any
		// SkipLifecycle leaves out the start.
		SkipLifecycle bool `yaml:"skip_lifecycle"`
	}
}

func metadataOf(t *testing.T, folder string) (m metadata) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(readFile(t, filepath.Join(root, folder, "metadata.yaml"))), &m))
	return m
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content := profiletest.FileBytes(t, path)
	return string(content)
}

// load reads a section of a configuration onto the defaults.
func load(t *testing.T, factory component.Factory, section map[string]any) component.Config {
	t.Helper()
	config := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(section).Unmarshal(config))
	return config
}

// eachComponent runs a test of each component.
func eachComponent(t *testing.T, test func(t *testing.T, folder string, factory component.Factory, declared metadata)) {
	for folder, factory := range factories {
		t.Run(folder, func(t *testing.T) { test(t, folder, factory, metadataOf(t, folder)) })
	}
}

// Each folder that has a metadata.yaml is tested here.
func TestEveryComponentIsKnown(t *testing.T) {
	files := profiletest.Glob(t, filepath.Join(root, "*", "*", "metadata.yaml"))
	assert.Len(t, files, len(factories))
	for _, file := range files {
		folder, err := filepath.Rel(root, filepath.Dir(file))
		require.NoError(t, err)
		assert.Contains(t, factories, filepath.ToSlash(folder))
	}
}

// The factory has the type, and makes the signals with the stability, that metadata.yaml declares. All keys have valid
// names.
func TestFactoriesAreAsDeclared(t *testing.T) {
	eachComponent(t, func(t *testing.T, _ string, factory component.Factory, declared metadata) {
		assert.Equal(t, declared.Type, factory.Type().String())
		assert.NoError(t, componenttest.CheckConfigStruct(factory.CreateDefaultConfig()))
		stability := map[string][]string{}
		for name, s := range signalsOf(factory) {
			if s.stability != component.StabilityLevelUndefined {
				level := strings.ToLower(s.stability.String())
				stability[level] = append(stability[level], name)
			}
		}
		require.Len(t, stability, len(declared.Status.Stability))
		for level, names := range declared.Status.Stability {
			assert.ElementsMatch(t, names, stability[level])
		}
	})
}

// The components of all signals with one configuration can be shut down whether they were started or not, and others
// started after them. Their metrics are of the scope that is their package.
func TestLifecycle(t *testing.T) {
	eachComponent(t, func(t *testing.T, folder string, factory component.Factory, declared metadata) {
		for _, start := range []bool{false, true, true} {
			if start && declared.Tests.SkipLifecycle {
				continue
			}
			config := load(t, factory, withFolder(declared.Tests.Config, t.TempDir()))
			require.NoError(t, confmap.Validate(config))
			scopes := &scopes{}
			set := componenttest.NewNopTelemetrySettings()
			set.MeterProvider = scopes
			var made []component.Component
			for name, s := range signalsOf(factory) {
				if s.stability != component.StabilityLevelUndefined {
					c, err := s.create(t.Context(), set, config)
					require.NoError(t, err, name)
					made = append(made, c)
				}
			}
			for _, c := range made {
				if start {
					require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
				}
			}
			for _, c := range made {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				require.NoError(t, c.Shutdown(ctx), "started: %t", start)
				cancel()
			}
			if len(declared.Telemetry.Metrics) > 0 {
				assert.Contains(t, scopes.names, module+folder)
			}
		}
	})
}

// withFolder replaces the word FOLDER in the values of a section.
func withFolder(section map[string]any, folder string) map[string]any {
	text, _ := yaml.Marshal(section) // which was read as YAML
	var replaced map[string]any
	_ = yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "FOLDER", folder)), &replaced)
	return replaced
}

// scopes collects the names of the scopes that meters are made for.
type scopes struct {
	noop.MeterProvider
	names []string
}

func (s *scopes) Meter(name string, options ...metric.MeterOption) metric.Meter {
	s.names = append(s.names, name)
	return s.MeterProvider.Meter(name, options...)
}

// Each README has an example of its component, and the component accepts it, and those of its other pages.
func TestExamplesOfReadmes(t *testing.T) {
	eachComponent(t, func(t *testing.T, folder string, factory component.Factory, declared metadata) {
		found := 0
		examples := collectortest.ReadmeExamples(t, filepath.Join(root, folder, "README.md"))
		if folder == "receiver/pprofreceiver" {
			examples = append(examples, collectortest.ReadmeExamples(t, filepath.Join(root, folder, "docs", "scraping.md"))...)
		}
		for _, example := range examples {
			for name, section := range example[declared.Status.Class+"s"] {
				var id component.ID
				require.NoError(t, id.UnmarshalText([]byte(name)))
				if id.Type() != factory.Type() {
					continue
				}
				found++
				values, _ := section.(map[string]any)
				assert.NoError(t, confmap.Validate(load(t, factory, values)), section)
			}
		}
		assert.Positive(t, found)
	})
}
