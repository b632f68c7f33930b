// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/receiver"
)

func TestConfigOfTheReadme(t *testing.T) {
	cfg, err := loadConfig(`
protocols:
  grpc: {endpoint: localhost:14317}
  http: {endpoint: localhost:14318, max_request_body_size: 1000}
  hec: {endpoint: localhost:18088}
limits: {max_profile_bytes: 5, max_stack_depth: 6}`)
	require.NoError(t, err)
	assert.Equal(t, "localhost:14317", cfg.Protocols.GRPC.Get().Server.NetAddr.Endpoint)
	assert.Equal(t, 20, cfg.Protocols.GRPC.Get().Server.MaxRecvMsgSizeMiB)
	assert.EqualValues(t, 1000, cfg.Protocols.HTTP.Get().Server.MaxRequestBodySize)
	assert.Equal(t, "localhost:18088", cfg.Protocols.HEC.Get().Server.NetAddr.Endpoint)
	options := cfg.Translation.Options()
	assert.Equal(t, 5, options.Limits.MaxProfileBytes)
	assert.Equal(t, 6, options.Limits.MaxStackDepth)
}

func TestConfigProtocolsAreOptional(t *testing.T) {
	for _, only := range []string{"grpc", "http", "hec"} {
		cfg, err := loadConfig("protocols: {" + only + ": }")
		require.NoError(t, err)
		assert.Equal(t, []bool{only == "grpc", only == "http", only == "hec"},
			[]bool{cfg.Protocols.GRPC.HasValue(), cfg.Protocols.HTTP.HasValue(), cfg.Protocols.HEC.HasValue()})
	}
}

func TestConfigFaults(t *testing.T) {
	for config, says := range map[string]string{
		"":                                  "at least one of `grpc`, `http` and `hec`",
		"protocols: {}":                     "at least one of `grpc`, `http` and `hec`",
		"protocols: {grpc: {endpoint: ''}}": "grpc: `endpoint` must be set",
		"protocols: {http: {endpoint: ''}}": "`endpoint` must be set",
		"protocols: {hec: {endpont: x}}":    "invalid keys: endpont",
		"protocols: {http: {endpont: x}}":   "invalid keys: endpont",
		"protocols: {hec: {compression_algorithms: ['', br]}}":                 "`compression_algorithms` must be among gzip, zstd, zlib, deflate, snappy, x-snappy-framed, lz4, found \"br\"",
		"protocols: {grpc: {endpont: x}}":                                      "endpont",
		"protocols: {hce: {}}":                                                 "hce",
		"protocols: {hec: }\nlimits: {max_profile_bytes: 0}":                   "`max_profile_bytes` must be positive, found 0",
		"protocols: {hec: }\nlimits: {max_profile_bytes: 4611686018427387904}": "`max_profile_bytes` must be at most 1099511627776",
		"protocols: {hec: }\nlimits: {max_stack_depth: -1}":                    "`max_stack_depth` must be positive, found -1",
	} {
		_, err := loadConfig(config)
		assert.ErrorContains(t, err, says, config)
	}
}

// A second pipeline starts and stops the same servers only once.
func TestPipelinesShareTheServers(t *testing.T) {
	f := startFixture(t, allOfThem, true)
	require.NoError(t, f.receiver.Start(t.Context(), host{}))
	require.Len(t, f.receiver.Shared.servers, 3)
	address := f.address("grpc")
	require.NoError(t, f.receiver.Shutdown(t.Context()))
	require.NoError(t, f.receiver.Shutdown(t.Context()))
	_, err := net.Dial("tcp", address)
	assert.Error(t, err)
}

func TestLogsPipelineAloneIsAnError(t *testing.T) {
	cfg, err := loadConfig(allOfThem)
	require.NoError(t, err)
	set := receiver.Settings{ID: component.MustNewID("splunk_profiling"),
		TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	r, err := NewFactory().CreateLogs(t.Context(), set, cfg, &pipelines{t: t})
	require.NoError(t, err)
	assert.ErrorContains(t, r.Start(t.Context(), host{}), "the receiver is in no profiles pipeline")
	assert.NoError(t, r.Shutdown(t.Context()))
}

// Where a later server cannot start, the earlier ones do not stay.
func TestStartIsAllOrNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	f := newFixture(t, "protocols: {grpc: {endpoint: 'localhost:0'}, hec: {endpoint: '"+taken.Addr().String()+"'}}", false)
	err = f.receiver.Start(t.Context(), host{})
	require.ErrorContains(t, err, "start `hec`")
	assert.ErrorContains(t, err, "address already in use")
	assert.Empty(t, f.receiver.Shared.servers)
	f = newFixture(t, "protocols: {grpc: {endpoint: '"+taken.Addr().String()+"'}}", false)
	assert.ErrorContains(t, f.receiver.Start(t.Context(), host{}), "start `grpc`")
}

// A pipeline that hangs cannot keep Shutdown from ending in time. The tests of httpserver have HTTP.
func TestShutdownEndsInTime(t *testing.T) {
	f := startFixture(t, "protocols: {grpc: {endpoint: 'localhost:0'}}", false)
	entered, release := make(chan struct{}), make(chan struct{})
	f.next.refuseProfiles = func() error {
		close(entered)
		<-release
		return nil
	}
	failed := make(chan error, 1)
	body := captured(t)["v3.1.2-001-cpu"]
	go func() {
		_, err := f.sendGRPC(t, requestOf(t, body))
		failed <- err
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	time.AfterFunc(200*time.Millisecond, func() { close(release) })
	assert.ErrorContains(t, f.receiver.Shutdown(ctx), "cut off")
	assert.Error(t, <-failed)
}

func TestGRPCMessageLimit(t *testing.T) {
	f := startFixture(t, "protocols: {grpc: {endpoint: 'localhost:0', max_recv_msg_size_mib: 1}}", false)
	ld := mixed()
	ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Body().SetStr(string(make([]byte, 2<<20)))
	_, err := f.sendGRPC(t, plogotlp.NewExportRequestFromLogs(ld))
	assert.ErrorContains(t, err, "larger than max")
}
