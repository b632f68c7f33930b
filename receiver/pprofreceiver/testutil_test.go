// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/push"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// fixture is a receiver with its pipeline, logs and metrics.
type fixture struct {
	*sourcetest.Fixture
	receiver *pprofReceiver
}

// newFixture returns a receiver for a YAML configuration, not started.
func newFixture(t testing.TB, config string) *fixture {
	t.Helper()
	f := &fixture{Fixture: sourcetest.New(t)}
	cfg, err := loadConfig(config)
	require.NoError(t, err)
	f.receiver, err = newReceiver(f.Set, cfg, f.Next)
	require.NoError(t, err)
	return f
}

func (f *fixture) start(extensions sourcetest.Host) *fixture {
	f.T.Helper()
	f.Start(f.receiver, extensions)
	return f
}

func (f *fixture) stop() {
	f.T.Helper()
	f.Stop(f.receiver)
}

func startFixture(t testing.TB, config string) *fixture {
	t.Helper()
	return newFixture(t, config).start(nil)
}

// pushServer is the fixture's `server`.
func (f *fixture) pushServer() *push.Server {
	for _, s := range f.receiver.sources {
		if server, ok := s.Component.(*push.Server); ok {
			return server
		}
	}
	f.T.Fatal("no server")
	return nil
}

// pushURL returns the URL for pushes to the fixture's server.
func (f *fixture) pushURL() string { return "http://" + f.pushServer().Addr().String() + push.Path }

// loadConfig reads the receiver's section as the Collector does.
func loadConfig(config string) (*Config, error) {
	return collectortest.LoadYAML(createDefaultConfig().(*Config), config)
}
