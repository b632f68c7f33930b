// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package sourcetest has the helpers that the tests of the sources share: a pipeline that records, logs, metrics and
// servers. Only tests import it.
package sourcetest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
)

// The receiver's own metrics that tests of several sources read.
const (
	MetricRejected = "otelcol_receiver_pprof_rejected_payloads"
	MetricDropped  = "otelcol_receiver_pprof_dropped_samples"
	MetricRepaired = "otelcol_receiver_pprof_repaired"
)

// Patience is how long a test waits for an event that must happen.
const Patience = 20 * time.Second

// Pipeline is the next consumer: it checks and records profiles, or refuses them.
type Pipeline struct {
	T  testing.TB
	mu sync.Mutex
	// Err returns the error of the n-th delivery, from 0; nil accepts all.
	Err func(n int) error
	// Discard neither checks nor keeps profiles.
	Discard  bool
	Tries    int
	Received []pprofile.Profiles
}

// Capabilities reports that profiles are not changed.
func (*Pipeline) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeProfiles records profiles, or refuses them.
func (p *Pipeline) ConsumeProfiles(_ context.Context, pd pprofile.Profiles) error {
	p.mu.Lock()
	decide, n, discard := p.Err, p.Tries, p.Discard
	p.Tries++
	p.mu.Unlock()
	if decide != nil {
		if err := decide(n); err != nil {
			return err
		}
	}
	if discard {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := profiletest.Check(pd); err != nil {
		p.T.Errorf("profiles that are not conformant: %v", err)
	}
	p.Received = append(p.Received, pd)
	return nil
}

// RefuseWith makes all further deliveries fail; nil accepts them again.
func (p *Pipeline) RefuseWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Err = func(int) error { return err }
}

// All returns the profiles accepted so far.
func (p *Pipeline) All() []pprofile.Profiles {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.Received)
}

// Forget drops the profiles accepted so far.
func (p *Pipeline) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Received = nil
}

// Attempts returns the number of deliveries, refused ones included.
func (p *Pipeline) Attempts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Tries
}

// Fixture is the pipeline, the logs and the metrics of a component.
type Fixture struct {
	T         testing.TB
	Next      *Pipeline
	Logs      *observer.ObservedLogs
	Telemetry *componenttest.Telemetry
	Set       receiver.Settings
}

// Host is a component.Host that has only extensions.
type Host map[component.ID]component.Component

// GetExtensions returns the extensions.
func (h Host) GetExtensions() map[component.ID]component.Component { return h }

// New returns a fixture that ends with the test.
func New(t testing.TB) *Fixture {
	t.Helper()
	f := &Fixture{T: t, Next: &Pipeline{T: t}, Telemetry: componenttest.NewTelemetry()}
	core, logs := observer.New(zapcore.InfoLevel)
	f.Logs = logs
	f.Set = receiver.Settings{
		ID:                component.MustNewID("pprof"),
		TelemetrySettings: f.Telemetry.NewTelemetrySettings(),
		BuildInfo:         component.BuildInfo{Command: "otelcol-profiles", Version: "1.2.3"},
	}
	f.Set.Logger = zap.New(core)
	f.Set.TracerProvider = noop.NewTracerProvider() // a recorder of spans would grow without bound under fuzzing
	f.Set.Resource.Attributes().PutStr("service.name", "otelcol-profiles")
	t.Cleanup(func() { require.NoError(t, f.Telemetry.Shutdown(context.Background())) })
	return f
}

// Ingester returns the Ingester of a source, with the default limits and a budget of its own. A maxProfileBytes of 0 is
// the default.
func (f *Fixture) Ingester(source, transport string, maxProfileBytes int) *ingest.Ingester {
	f.T.Helper()
	metrics, err := metadata.NewTelemetryBuilder(f.Set.TelemetrySettings)
	require.NoError(f.T, err)
	f.T.Cleanup(metrics.Shutdown)
	limits := scan.DefaultLimits()
	if maxProfileBytes > 0 {
		limits.MaxProfileBytes = maxProfileBytes
	}
	in, err := ingest.New(ingest.Settings{
		Set: f.Set, Limits: limits, Config: ingest.Config{Formats: ingest.AllFormats(), GoTrace: ingest.DefaultGoTrace()},
		Budget: budget.New(64 * int64(limits.MaxProfileBytes)), Next: f.Next, Metrics: metrics, Source: source,
		Transport: transport,
	})
	require.NoError(f.T, err)
	return in
}

// Start starts a component, which ends with the test.
func (f *Fixture) Start(c component.Component, extensions Host) {
	f.T.Helper()
	require.NoError(f.T, c.Start(context.Background(), extensions))
	f.T.Cleanup(func() { f.Stop(c) })
}

// Stop shuts a component down.
func (f *Fixture) Stop(c component.Component) {
	f.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	require.NoError(f.T, c.Shutdown(ctx))
}

// Await waits until the pipeline has accepted n deliveries.
func (f *Fixture) Await(n int) []pprofile.Profiles {
	f.T.Helper()
	require.Eventually(f.T, func() bool { return len(f.Next.All()) >= n }, Patience, 5*time.Millisecond)
	return f.Next.All()
}

// AwaitLog waits until n logged messages contain message.
func (f *Fixture) AwaitLog(n int, message string) []observer.LoggedEntry {
	f.T.Helper()
	find := func() []observer.LoggedEntry { return f.Logs.FilterMessageSnippet(message).All() }
	require.Eventually(f.T, func() bool { return len(find()) >= n }, Patience, 5*time.Millisecond)
	return find()
}

// Sum adds up the points of a metric that have all the given attributes (key, value, …).
func (f *Fixture) Sum(name string, attributes ...string) int64 {
	f.T.Helper()
	return collectortest.Sum(f.T, f.Telemetry, name, attributes...)
}

// Captured reads one of the repository's captured inputs.
func Captured(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository(), "testdata", "pprof", name))
	require.NoError(t, err)
	return data
}

// ResourceOf renders the resource attributes of the only resource.
func ResourceOf(t testing.TB, pd pprofile.Profiles) map[string]any {
	t.Helper()
	require.Equal(t, 1, pd.ResourceProfiles().Len())
	return pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw()
}

// Site is a server whose handler can be replaced.
type Site struct {
	*httptest.Server
	Handler  atomic.Pointer[http.HandlerFunc]
	Requests atomic.Int64
}

// NewSite returns a server that ends with the test.
func NewSite(t testing.TB, handler http.HandlerFunc) *Site {
	s := &Site{}
	s.Handler.Store(&handler)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Requests.Add(1)
		(*s.Handler.Load())(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// AwaitRequests waits for n further requests.
func (s *Site) AwaitRequests(t testing.TB, n int64) {
	t.Helper()
	until := s.Requests.Load() + n
	require.Eventually(t, func() bool { return s.Requests.Load() >= until }, Patience, time.Millisecond)
}

// Serve returns a handler that answers with data and headers.
func Serve(data []byte, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		_, _ = w.Write(data)
	}
}

// repository returns the folder that holds go.mod.
func repository() string {
	folder := "."
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		folder = filepath.Join(folder, "..")
	}
}
