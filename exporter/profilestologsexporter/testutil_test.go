// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const start = 1_700_000_000_000_000_000

// batch is a batch of n observations in n stacks, of one name.
func batch(name string, n int) pprofile.Profiles {
	b := profiletest.New().Resource("service.name", "shop").Scope("otel.profiling", "0.1.0").
		Profile("samples", "count").Time(start, uint64(n)*1_000_000+10_000_000).Period(10_000_000, "cpu", "nanoseconds")
	for i := range n {
		leaf := name + string(rune('a'+i%26)) + string(rune('a'+i/26))
		b.Sample(profiletest.Observed([]uint64{start + uint64(i)*1_000_000}, leaf, "main"))
	}
	return b.Build()
}

// inbox is what a server was sent and took.
type inbox struct {
	mu sync.Mutex
	// profiles and logs are what was accepted.
	profiles []pprofile.Profiles
	logs     []plog.Logs
	asked    int
	tooLarge int
	// refuseProfiles and refuseLogs answer the n-th request, from 1 on; without them everything is accepted.
	refuseProfiles, refuseLogs func(n int) error
	partialLogs                int64
	profilesSeen, logsSeen     int
}

func (b *inbox) takeProfiles(pd pprofile.Profiles) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.profilesSeen++
	if b.refuseProfiles != nil {
		if err := b.refuseProfiles(b.profilesSeen); err != nil {
			return err
		}
	}
	b.profiles = append(b.profiles, pd)
	return nil
}

func (b *inbox) takeLogs(ld plog.Logs) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.logsSeen++
	if b.refuseLogs != nil {
		if err := b.refuseLogs(b.logsSeen); err != nil {
			return err
		}
	}
	b.logs = append(b.logs, ld)
	return nil
}

// samples counts the accepted observations by the name of their leaf, and those that came as log records.
func (b *inbox) samples(t *testing.T) (byLeaf map[string]int, asLogs int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	byLeaf = map[string]int{}
	for _, pd := range b.profiles {
		countLeaves(pd, byLeaf)
	}
	for _, ld := range b.logs {
		result := records.Translate(ld, records.Options{})
		require.Empty(t, result.Rejected)
		countLeaves(result.Profiles, byLeaf)
		asLogs += result.Samples
	}
	return byLeaf, asLogs
}

func countLeaves(pd pprofile.Profiles, to map[string]int) {
	d := pd.Dictionary()
	for _, rp := range pd.ResourceProfiles().All() {
		for _, p := range rp.ScopeProfiles().At(0).Profiles().All() {
			for _, s := range p.Samples().All() {
				location := d.LocationTable().At(int(d.StackTable().At(int(s.StackIndex())).LocationIndices().At(0)))
				function := d.FunctionTable().At(int(location.Lines().At(0).FunctionIndex()))
				to[d.StringTable().At(int(function.NameStrindex()))] += s.TimestampsUnixNano().Len()
			}
		}
	}
}

// requireOnce expects every sample of the batches exactly once.
func (b *inbox) requireOnce(t *testing.T, batches ...pprofile.Profiles) (asLogs int) {
	t.Helper()
	want := map[string]int{}
	for _, pd := range batches {
		countLeaves(pd, want)
	}
	got, asLogs := b.samples(t)
	require.Equal(t, want, got)
	return asLogs
}

type profilesService struct {
	pprofileotlp.UnimplementedGRPCServer
	*inbox
}

func (s *profilesService) Export(_ context.Context, r pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	return pprofileotlp.NewExportResponse(), s.takeProfiles(r.Profiles())
}

type logsService struct {
	plogotlp.UnimplementedGRPCServer
	*inbox
}

func (s *logsService) Export(_ context.Context, r plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	answer := plogotlp.NewExportResponse()
	if s.partialLogs > 0 {
		answer.PartialSuccess().SetRejectedLogRecords(s.partialLogs)
		answer.PartialSuccess().SetErrorMessage("not these")
	}
	return answer, s.takeLogs(r.Logs())
}

// grpcServer serves logs and, if withProfiles, profiles. It returns the exporter's configuration for it.
func grpcServer(t *testing.T, b *inbox, withProfiles bool, options ...grpc.ServerOption) map[string]any {
	t.Helper()
	server := grpc.NewServer(options...)
	plogotlp.RegisterGRPCServer(server, &logsService{inbox: b})
	if withProfiles {
		pprofileotlp.RegisterGRPCServer(server, &profilesService{inbox: b})
	}
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return map[string]any{"endpoint": listener.Addr().String(), "tls": map[string]any{"insecure": true}}
}

// httpServer serves logs and profiles, unless answerProfiles has answered the n-th request with profiles.
func httpServer(t *testing.T, b *inbox, answerProfiles func(w http.ResponseWriter, n int) bool) map[string]any {
	t.Helper()
	return httpServerOf(t, b, func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.URL.Path != "/v1development/profiles" {
			return false
		}
		b.mu.Lock()
		b.asked++
		n := b.asked
		b.mu.Unlock()
		return answerProfiles(w, n)
	})
}

// httpServerOf serves logs and profiles, unless answer has answered a request.
func httpServerOf(t *testing.T, b *inbox, answer func(http.ResponseWriter, *http.Request, []byte) bool) map[string]any {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := plainBody(t, r)
		if answer(w, r, body) {
			return
		}
		version := r.Header.Values(pprofileotlp.DevelopmentVersionHeader)
		switch r.URL.Path {
		case "/v1/logs":
			assert.Empty(t, version)
			request := plogotlp.NewExportRequest()
			assert.NoError(t, request.UnmarshalProto(body))
			assert.NoError(t, b.takeLogs(request.Logs()))
		case "/v1development/profiles":
			assert.Equal(t, []string{"1"}, version)
			request := pprofileotlp.NewExportRequest()
			assert.NoError(t, request.UnmarshalProto(body))
			assert.NoError(t, b.takeProfiles(request.Profiles()))
		default:
			t.Errorf("unexpected path %s", r.URL.Path)
		}
	}))
	t.Cleanup(server.Close)
	return map[string]any{"endpoint": server.URL}
}

// running is a started exporter without a queue, so that what it answers is what became of a batch.
type running struct {
	xexporter.Profiles
	maxRequestBytes int
	telemetry       *componenttest.Telemetry
	log             *observer.ObservedLogs
}

func runExporter(t *testing.T, raw map[string]any) *running {
	t.Helper()
	section := map[string]any{
		"sending_queue":    map[string]any{"enabled": false},
		"retry_on_failure": map[string]any{"initial_interval": "10ms", "max_interval": "100ms", "max_elapsed_time": "2m"},
		"timeout":          "1m", // the machine may be busy
	}
	for key, value := range raw {
		section[key] = value
	}
	cfg, err := load(section)
	require.NoError(t, err)
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	core, log := observer.New(zapcore.InfoLevel)
	set := exporter.Settings{ID: component.MustNewID("profiles_to_logs"),
		TelemetrySettings: telemetry.NewTelemetrySettings()}
	set.Logger = zap.New(core)
	e, err := NewFactory().(xexporter.Factory).CreateProfiles(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	return &running{Profiles: e, maxRequestBytes: cfg.requestBytes(), telemetry: telemetry, log: log}
}

func (r *running) send(t *testing.T, batches ...pprofile.Profiles) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, pd := range batches {
		sent := profiletest.Clone(pd) // marshalling changes what it marshals
		require.NoError(t, r.ConsumeProfiles(ctx, sent))
	}
}

// metric adds up a metric's points.
func (r *running) metric(t *testing.T, noun string) int64 {
	t.Helper()
	return collectortest.Sum(t, r.telemetry, "otelcol_exporter_profiles_to_logs_"+noun)
}
