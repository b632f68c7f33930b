// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
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

// Profiles of Splunk's agents, and others, that are sent as records by any protocol are restored as the same profiles.
func TestAcrossSplunkProfiling(t *testing.T) {
	files := profiletest.Glob(t, "../../testdata/splunk/*.pb")
	for _, protocol := range []string{"grpc", "http", "hec"} {
		for _, format := range []string{"pprof", "otlp"} {
			t.Run(protocol+"/"+format, func(t *testing.T) {
				address := collectortest.FreeAddress(t)
				sink := startSplunkProfiling(t, protocol, address)
				e := runExporter(t, map[string]any{"format": format, protocol: map[string]map[string]any{
					"grpc": {"endpoint": address, "tls": map[string]any{"insecure": true}},
					"http": {"endpoint": "http://" + address},
					"hec":  {"endpoint": "http://" + address + "/services/collector", "token": "any"},
				}[protocol]})
				sent := []pprofile.Profiles{batch("x", 5), timed()}
				for _, file := range files {
					body := profiletest.FileBytes(t, file)
					ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(body)
					require.NoError(t, err)
					result := records.Translate(ld, records.Options{})
					require.Empty(t, result.Rejected)
					sent = append(sent, result.Profiles)
				}
				for i, want := range sent {
					sink.Reset()
					e.send(t, want)
					if want.SampleCount() == 0 {
						require.Empty(t, sink.AllProfiles(), i)
						continue
					}
					require.Len(t, sink.AllProfiles(), 1, i)
					got := sink.AllProfiles()[0]
					require.NoError(t, profiletest.Check(got), i)
					if format == "pprof" {
						// It has no room for identifiers, and events have none for versions of scopes.
						clearIDs(want)
						clearIDs(got)
						for _, rp := range want.ResourceProfiles().All() {
							for _, sp := range rp.ScopeProfiles().All() {
								if protocol == "hec" {
									sp.Scope().SetVersion("")
								}
							}
						}
					}
					require.NoError(t, profiletest.Equal(want, got), i)
				}
				assert.Equal(t, int64(1), e.metric(t, "mode"))
			})
		}
	}
}

func clearIDs(pd pprofile.Profiles) {
	for p := range otlp.Profiles(pd) {
		p.SetProfileID(pprofile.ProfileID{})
	}
}
