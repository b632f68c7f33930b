// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shared"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const (
	patience    = 20 * time.Second
	logsService = "opentelemetry.proto.collector.logs.v1.LogsService"
	logsPath    = "/v1/logs"
	allOfThem   = "protocols: {grpc: {endpoint: 'localhost:0'}, http: {endpoint: 'localhost:0'}, hec: {endpoint: 'localhost:0'}}"
)

// pipelines are the next consumers. They return the errors of the functions below, and check what they accept.
type pipelines struct {
	t  testing.TB
	mu sync.Mutex
	// refuseProfiles and refuseLogs are called before anything is accepted.
	refuseProfiles, refuseLogs func() error
	profiles                   []pprofile.Profiles
	logs                       []plog.Logs
}

func (*pipelines) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (p *pipelines) ConsumeProfiles(_ context.Context, pd pprofile.Profiles) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuseProfiles != nil {
		if err := p.refuseProfiles(); err != nil {
			return err
		}
	}
	if err := profiletest.Check(pd); err != nil {
		p.t.Errorf("profiles that are not conformant: %v", err)
	}
	p.profiles = append(p.profiles, pd)
	return nil
}

func (p *pipelines) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuseLogs != nil {
		if err := p.refuseLogs(); err != nil {
			return err
		}
	}
	p.logs = append(p.logs, ld)
	return nil
}

// drain returns what was delivered so far, and forgets it.
func (p *pipelines) drain() ([]pprofile.Profiles, []plog.Logs) {
	p.mu.Lock()
	defer p.mu.Unlock()
	profiles, logs := p.profiles, p.logs
	p.profiles, p.logs = nil, nil
	return profiles, logs
}

func (p *pipelines) refuse(profiles, logs error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuseProfiles, p.refuseLogs = func() error { return profiles }, func() error { return logs }
}

// fixture is a receiver with what it writes to.
type fixture struct {
	t         testing.TB
	receiver  *shared.Component[*Config, *splunkReceiver]
	next      *pipelines
	telemetry *componenttest.Telemetry
}

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// newFixture makes a receiver of a YAML configuration as the Collector would, and does not start it.
func newFixture(t testing.TB, config string, withLogs bool) *fixture {
	t.Helper()
	f := &fixture{t: t, next: &pipelines{t: t}, telemetry: componenttest.NewTelemetry()}
	set := receiver.Settings{
		ID:                component.MustNewID("splunk_profiling"),
		TelemetrySettings: f.telemetry.NewTelemetrySettings(),
	}
	cfg, err := loadConfig(config)
	require.NoError(t, err)
	factory := NewFactory().(xreceiver.Factory)
	profiles, err := factory.CreateProfiles(t.Context(), set, cfg, f.next)
	require.NoError(t, err)
	f.receiver = profiles.(*shared.Component[*Config, *splunkReceiver])
	if withLogs {
		logs, err := factory.CreateLogs(t.Context(), set, cfg, f.next)
		require.NoError(t, err)
		require.Same(t, f.receiver, logs)
	}
	t.Cleanup(func() {
		require.NoError(t, f.receiver.Shutdown(context.Background()))
		require.NoError(t, f.telemetry.Shutdown(context.Background()))
	})
	return f
}

func startFixture(t testing.TB, config string, withLogs bool) *fixture {
	t.Helper()
	f := newFixture(t, config, withLogs)
	require.NoError(t, f.receiver.Start(t.Context(), host{}))
	return f
}

// address returns the address of a server.
func (f *fixture) address(name string) string {
	return f.receiver.Shared.servers[name].Addr().String()
}

// dial returns a client of the gRPC server.
func (f *fixture) dial(t testing.TB) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(f.address("grpc"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

// sum adds up the points of a counter that have all the given attributes (key, value, …).
func (f *fixture) sum(name string, attributes ...string) int64 {
	f.t.Helper()
	return collectortest.Sum(f.t, f.telemetry, name, attributes...)
}

// loadConfig reads the receiver's section as the Collector does.
func loadConfig(config string) (*Config, error) {
	return collectortest.LoadYAML(createDefaultConfig().(*Config), config)
}

// captured returns the requests of testdata by name.
func captured(t testing.TB) map[string][]byte {
	t.Helper()
	files := profiletest.Glob(t, filepath.Join("..", "..", "testdata", "splunk", "*.otlp-logs.pb"))
	require.Len(t, files, 9)
	requests := map[string][]byte{}
	for _, file := range files {
		body := profiletest.FileBytes(t, file)
		requests[strings.TrimSuffix(filepath.Base(file), ".otlp-logs.pb")] = body
	}
	return requests
}

func requestOf(t testing.TB, body []byte) plogotlp.ExportRequest {
	t.Helper()
	request := plogotlp.NewExportRequest()
	require.NoError(t, request.UnmarshalProto(body))
	return request
}

const stack = "\"main\" #1 nid=0x3\n   java.lang.Thread.State: RUNNABLE\n\tat com.shop.Cart.total(Cart.java:12)\n"

// mixed returns a request with a profile, an ordinary record, and a record that claims to be a profile.
func mixed() plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "shop")
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("otel.profiling")
	record := sl.LogRecords().AppendEmpty()
	record.Body().SetStr(stack)
	record.Attributes().PutStr("profiling.data.format", "text")
	sl = rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("shop.log")
	sl.LogRecords().AppendEmpty().Body().SetStr("hello")
	record = sl.LogRecords().AppendEmpty()
	record.Body().SetStr("garbage")
	record.Attributes().PutStr("com.splunk.sourcetype", "otel.profiling")
	return ld
}
