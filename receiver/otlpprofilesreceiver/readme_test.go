// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlplayouts"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestReadmeDefaults(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	grpc, http := cfg.Protocols.GRPC.GetOrInsertDefault(), cfg.Protocols.HTTP.GetOrInsertDefault()
	rows := profiletest.ReadmeTable(t, "README.md", "| key | type | default | meaning |")
	delete(rows, "key")
	for key, want := range map[string]any{
		"protocols.grpc.endpoint":              grpc.NetAddr.Endpoint,
		"protocols.grpc.max_recv_msg_size_mib": grpc.MaxRecvMsgSizeMiB,
		"protocols.http.endpoint":              http.Server.NetAddr.Endpoint,
		"protocols.http.max_request_body_size": http.Server.MaxRequestBodySize,
		"protocols.http.read_timeout":          http.Server.ReadTimeout,
		"limits.max_bytes_in_flight":           cfg.Limits.MaxBytesInFlight,
		"drain_timeout":                        cfg.DrainTimeout,
	} {
		require.Contains(t, rows, key)
		assert.Equal(t, fmt.Sprint(want), rows[key][2], key)
		delete(rows, key)
	}
	assert.Empty(t, rows)
}

func TestMetadataAndReadme(t *testing.T) {
	declared, rows := profiletest.LoadMetadata(t), profiletest.ReadmeRows(t)
	assert.Equal(t, NewFactory().Type().String(), declared.Type)
	h := start(t, nil, nil)
	stats := &otlplayouts.Stats{Ambiguous: true}
	for i := range stats.Dropped {
		stats.Dropped[i] = 1
	}
	for i := range stats.Repaired {
		stats.Repaired[i] = 1
	}
	for l := range otlplayouts.NumLayouts {
		stats.Layout = otlplayouts.Layout(l)
		h.metrics.count(t.Context(), stats)
	}
	for name, want := range declared.Telemetry.Metrics {
		made, err := h.telemetry.GetMetric("otelcol_" + name)
		require.NoError(t, err)
		assert.Equal(t, want.Description, made.Description)
		assert.Equal(t, want.Unit, made.Unit)
		row := rows["otelcol_"+name]
		require.NotEmpty(t, row, "README: %s", name)
		for _, point := range made.Data.(metricdata.Sum[int64]).DataPoints {
			for _, kv := range point.Attributes.ToSlice() {
				require.Equal(t, want.Attributes, []string{string(kv.Key)})
				values := strings.ReplaceAll(row[1], " ", ",")
				if kv.Key == "layout" {
					values = strings.Join(declared.Attributes["layout"].Enum, ",")
				}
				assert.Contains(t, ","+values+",", ","+kv.Value.AsString()+",", name)
			}
		}
	}
}
