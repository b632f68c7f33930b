// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

const patience = 20 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(loadTargetsVariable) != "" {
		serveLoadTargets()
		return
	}
	goleak.VerifyTestMain(m)
}

// pipeline is the next consumer: it checks what it gets, and refuses with err where that is set.
type pipeline struct {
	t  testing.TB
	mu sync.Mutex
	// err decides on the n-th delivery, from 0; nil takes all.
	err func(n int) error
	// discard keeps nothing of what was received, and checks nothing.
	discard  bool
	tries    int
	received []pprofile.Profiles
}

func (*pipeline) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (p *pipeline) ConsumeProfiles(_ context.Context, pd pprofile.Profiles) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.tries
	p.tries++
	if p.err != nil {
		if err := p.err(n); err != nil {
			return err
		}
	}
	if p.discard {
		return nil
	}
	if err := profiletest.Check(pd); err != nil {
		p.t.Errorf("profiles that are not conformant: %v", err)
	}
	p.received = append(p.received, pd)
	return nil
}

func (p *pipeline) refuseWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = func(int) error { return err }
}

func (p *pipeline) all() []pprofile.Profiles {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]pprofile.Profiles(nil), p.received...)
}

func (p *pipeline) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.received = nil
}

func (p *pipeline) attempts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tries
}

// fixture is a started receiver with what it writes to.
type fixture struct {
	t         testing.TB
	receiver  *pprofReceiver
	next      *pipeline
	logs      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
	set       receiver.Settings
}

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// newFixture makes a receiver of a YAML configuration as the collector would, and does not start it.
func newFixture(t testing.TB, config string) *fixture {
	t.Helper()
	f := &fixture{t: t, next: &pipeline{t: t}, telemetry: componenttest.NewTelemetry()}
	core, logs := observer.New(zapcore.InfoLevel)
	f.logs = logs
	f.set = receiver.Settings{
		ID:                component.MustNewID("pprof"),
		TelemetrySettings: f.telemetry.NewTelemetrySettings(),
		BuildInfo:         component.BuildInfo{Command: "otelcol-profiles", Version: "1.2.3"},
	}
	f.set.Logger = zap.New(core)
	f.set.TracerProvider = noop.NewTracerProvider() // a recorder of spans grows without end under fuzzing
	f.set.Resource.Attributes().PutStr("service.name", "otelcol-profiles")
	f.receiver = f.another(config)
	t.Cleanup(func() { require.NoError(t, f.telemetry.Shutdown(context.Background())) })
	return f
}

// another makes a receiver with the same surroundings.
func (f *fixture) another(config string) *pprofReceiver {
	f.t.Helper()
	cfg, err := loadConfig(config)
	require.NoError(f.t, err)
	made, err := newReceiver(f.set, cfg, f.next)
	require.NoError(f.t, err)
	return made
}

func (f *fixture) start(extensions host) *fixture {
	f.t.Helper()
	require.NoError(f.t, f.receiver.Start(context.Background(), extensions))
	f.t.Cleanup(f.stop)
	return f
}

func (f *fixture) stop() {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(f.t, f.receiver.Shutdown(ctx))
}

func startFixture(t testing.TB, config string) *fixture {
	t.Helper()
	return newFixture(t, config).start(nil)
}

// await waits until the pipeline has n deliveries.
func (f *fixture) await(n int) []pprofile.Profiles {
	f.t.Helper()
	require.Eventually(f.t, func() bool { return len(f.next.all()) >= n }, patience, 5*time.Millisecond)
	return f.next.all()
}

// awaitLog waits until n lines hold text.
func (f *fixture) awaitLog(n int, text string) []observer.LoggedEntry {
	f.t.Helper()
	find := func() []observer.LoggedEntry { return f.logs.FilterMessageSnippet(text).All() }
	require.Eventually(f.t, func() bool { return len(find()) >= n }, patience, 5*time.Millisecond)
	return find()
}

// pushURL is where the fixture's server was bound.
func (f *fixture) pushURL() string {
	for _, s := range f.receiver.sources {
		if server, ok := s.(*server); ok {
			return "http://" + server.address.String() + pushPath
		}
	}
	f.t.Fatal("no server")
	return ""
}

// sum adds up the points of a counter that have all the given attributes (key, value, ...).
func (f *fixture) sum(name string, attributes ...string) int64 {
	f.t.Helper()
	m, err := f.telemetry.GetMetric(name)
	if err != nil {
		return 0
	}
	var total int64
	for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
		if hasAttributes(point.Attributes, attributes) {
			total += point.Value
		}
	}
	return total
}

func hasAttributes(set attribute.Set, attributes []string) bool {
	for i := 0; i < len(attributes); i += 2 {
		if value, ok := set.Value(attribute.Key(attributes[i])); !ok || value.AsString() != attributes[i+1] {
			return false
		}
	}
	return true
}

// loadConfig reads the receiver's section as the collector does: decode onto the defaults, validate.
func loadConfig(config string) (*Config, error) {
	var raw map[string]any
	if err := yaml.Unmarshal([]byte(config), &raw); err != nil {
		return nil, err
	}
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	if err := confmap.NewFromStringMap(raw).Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, confmap.Validate(cfg)
}

// captured reads one of the repository's captured inputs.
func captured(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "pprof", name))
	require.NoError(t, err)
	return data
}

func gunzip(t testing.TB, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	plain, err := io.ReadAll(r)
	require.NoError(t, err)
	return plain
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// resourceOf renders the resource attributes of the only resource.
func resourceOf(t testing.TB, pd pprofile.Profiles) map[string]any {
	t.Helper()
	require.Equal(t, 1, pd.ResourceProfiles().Len())
	return pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw()
}
