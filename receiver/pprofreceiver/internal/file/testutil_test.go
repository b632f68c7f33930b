// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package file

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/goleak"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a reader with its pipeline, logs and metrics.
type fixture struct {
	*sourcetest.Fixture
	reader *Reader
}

// newFixture returns a reader for a configuration with the sections `file` and `limits`, not started.
func newFixture(t testing.TB, config string) *fixture {
	f := &fixture{Fixture: sourcetest.New(t)}
	f.reader = f.another(config)
	return f
}

// another returns a reader with the same pipeline, logs and metrics.
func (f *fixture) another(config string) *Reader {
	f.T.Helper()
	var raw struct {
		File   map[string]any
		Limits struct {
			MaxProfileBytes int `yaml:"max_profile_bytes"`
		}
	}
	require.NoError(f.T, yaml.Unmarshal([]byte(config), &raw))
	cfg := &Config{CollectionInterval: 10 * time.Second, InitialDelay: time.Second, AfterRead: AfterReadKeep,
		MaxEntries: 1000}
	require.NoError(f.T, confmap.NewFromStringMap(raw.File).Unmarshal(cfg))
	require.NoError(f.T, cfg.Validate())
	return New(cfg, f.Set, f.Ingester("file", "file", raw.Limits.MaxProfileBytes))
}

func (f *fixture) start(extensions sourcetest.Host) *fixture {
	f.T.Helper()
	f.Start(f.reader, extensions)
	return f
}

func (f *fixture) stop() {
	f.T.Helper()
	f.Stop(f.reader)
}

func startFixture(t testing.TB, config string) *fixture {
	t.Helper()
	return newFixture(t, config).start(nil)
}
