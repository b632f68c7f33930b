// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestMetadata makes something of everything that is counted, by the names of metadata.yaml.
func TestMetadata(t *testing.T) {
	b := &inbox{partialLogs: 1}
	e := runExporter(t,
		map[string]any{"grpc": grpcServer(t, b, false), "splunk_types_only": true, "max_record_bytes": 1000})
	pd := batch("x", 2)
	profiletest.SampleAt(pd, 1).SetStackIndex(99)
	other := profiletest.New().Resource("service.name", "shop").
		Profile("inuse_space", "bytes").Sample(profiletest.Value(7, "kept")).
		Profile("samples", "count").Sample(profiletest.Value(1, strings.Repeat(t.Name()+"é", 200))).
		Attributes(profiletest.Attr("note", strings.Repeat("x", 2000)), profiletest.Attr("profiling.data.type", "another")).
		Build()
	e.send(t, pd, other)
	choosy := runExporter(t, map[string]any{"http": smallServer(t, &inbox{}, 20_000, true)})
	choosy.send(t, profiletest.New().Profile("samples", "count").Sample(profiletest.Value(1, "leaf")).
		Payload("pprof", make([]byte, 30_000)).Build())
	for name := range profiletest.LoadMetadata(t).Telemetry.Metrics {
		noun := strings.TrimPrefix(name, "exporter_profiles_to_logs_")
		assert.Positive(t, e.metric(t, noun)+choosy.metric(t, noun), name)
	}
}
