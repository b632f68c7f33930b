// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.yaml.in/yaml/v3"
)

// patience is generous: machines that run tests are busy.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// load reads a job as the collector does.
func load(text string) (*Config, error) {
	var raw map[string]any
	if err := yaml.Unmarshal([]byte(text), &raw); err != nil {
		return nil, err
	}
	cfg := &Config{}
	if err := cfg.Unmarshal(confmap.NewFromStringMap(raw)); err != nil {
		return nil, err
	}
	return cfg, cfg.Validate()
}

func mustLoad(t testing.TB, text string) *Config {
	t.Helper()
	cfg, err := load(text)
	require.NoError(t, err)
	return cfg
}

// watcher keeps the last update of a running manager.
type watcher struct {
	t    testing.TB
	mu   sync.Mutex
	last Update
	stop func()
}

func watch(t testing.TB, jobs ...string) *watcher {
	t.Helper()
	return watchWith(t, zap.NewNop(), jobs...)
}

func watchWith(t testing.TB, logger *zap.Logger, jobs ...string) *watcher {
	t.Helper()
	var cfgs []*Config
	for _, text := range jobs {
		cfgs = append(cfgs, mustLoad(t, text))
	}
	m, err := NewManager(cfgs, logger)
	require.NoError(t, err)
	m.every = 50 * time.Millisecond
	for _, p := range m.providers {
		if f, ok := p.discoverer.(*folders); ok {
			f.every = 20 * time.Millisecond
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{t: t}
	var running sync.WaitGroup
	running.Go(func() {
		m.Run(ctx, func(u Update) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.last = u
		})
	})
	w.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(w.stop)
	return w
}

// await waits for an update that is as wanted.
func (w *watcher) await(wanted func(Update) bool) Update {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return wanted(w.now()) }, patience, 5*time.Millisecond)
	return w.now()
}

func (w *watcher) now() Update {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// urls renders the endpoints of an update.
func urls(u Update) []string {
	var all []string
	for _, t := range u.Targets {
		for _, e := range t.Endpoints {
			all = append(all, e.Profile.Name+" "+e.URL.String())
		}
	}
	return all
}
