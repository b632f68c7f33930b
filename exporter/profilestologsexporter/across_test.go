// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/splunkprofilingreceiver"
)

// startSplunkProfiling starts the project's receiver of records for one protocol, and returns its output.
func startSplunkProfiling(t *testing.T, protocol, address string) *consumertest.ProfilesSink {
	t.Helper()
	factory := splunkprofilingreceiver.NewFactory().(xreceiver.Factory)
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{protocol: map[string]any{"endpoint": address}},
	}).Unmarshal(cfg))
	sink := &consumertest.ProfilesSink{}
	set := receivertest.NewNopSettings(component.MustNewType("splunk_profiling"))
	receiver, err := factory.CreateProfiles(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, receiver.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, receiver.Shutdown(context.Background())) })
	return sink
}

// Profiles of Splunk's agents, sent as records, are restored as the same profiles.
func TestCapturedRecordsComeBack(t *testing.T) {
	files, err := filepath.Glob("../../testdata/splunk/*.pb")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, format := range []string{"pprof", "otlp"} {
		address := collectortest.FreeAddress(t)
		sink := startSplunkProfiling(t, "grpc", address)
		e := runExporter(t, map[string]any{
			"grpc": map[string]any{"endpoint": address, "tls": map[string]any{"insecure": true}}, "format": format,
		})
		for _, file := range files {
			body, err := os.ReadFile(file)
			require.NoError(t, err)
			ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(body)
			require.NoError(t, err)
			result := records.Translate(ld, records.Options{})
			require.Empty(t, result.Rejected)
			sink.Reset()
			e.send(t, result.Profiles)
			if result.Samples == 0 {
				require.Empty(t, sink.AllProfiles(), file)
				continue
			}
			require.Len(t, sink.AllProfiles(), 1, file)
			want, got := result.Profiles, sink.AllProfiles()[0]
			if format == "pprof" {
				// It has no room for identifiers.
				clearIDs(want)
				clearIDs(got)
			}
			require.NoError(t, profiletest.Equal(want, got), file)
		}
	}
}

func clearIDs(pd pprofile.Profiles) {
	for p := range otlp.Profiles(pd) {
		p.SetProfileID(pprofile.ProfileID{})
	}
}
