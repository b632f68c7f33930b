// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// TestSQL runs the SQL of docs/store.md over the blocks of two days, by DuckDB from npm. Its sums are those of the store.
func TestSQL(t *testing.T) {
	app := installNPM(t, "E2E_SQL", "duckdb")
	dir := t.TempDir()
	s := store.New(store.Config{
		Window: time.Hour, Resolution: time.Second, MaxBytes: 64 << 20, MaxSeries: 100,
		Disk: store.DiskConfig{Directory: dir, Retention: 1000 * time.Hour, MaxBytes: 1 << 30, Report: func(string, error) {}},
	})
	require.NoError(t, s.Open())
	trace := [16]byte{0x5b, 0x8e, 0xff, 0xf7, 0x98, 0x03, 0x81, 0x03, 0xd2, 0x69, 0xb6, 0x33, 0x81, 0x3f, 0xc6, 0x0c}
	for now := time.Now().Add(-40 * time.Hour); now.Before(time.Now()); now = now.Add(20 * time.Minute) {
		for i, service := range []string{"shop", "cart"} {
			value := int64(i+1) * 1e9
			s.Add(profiletest.New().Resource("service.name", service, "service.version", now.Format("2"), "k8s.pod.name", service+"-1").
				Profile("cpu", "nanoseconds").Time(uint64(now.UnixNano()), 10e9).Sample(
				profiletest.Value(value, "encoding/json.Marshal", "handle", "main").With(profiletest.Attr("endpoint", "/cart")),
				profiletest.Value(value, "leaf", "main").Linked(trace, [8]byte{1})).
				Profile("inuse_space", "bytes").Time(uint64(now.UnixNano()), 0).Sample(profiletest.Value(1000, "leaf", "main")).
				Build(), now.Add(10*time.Second))
		}
		s.Maintain(now)
	}
	s.Maintain(time.Now().Add(2 * time.Hour)) // so that everything is in blocks
	defer func() { require.NoError(t, s.Close()) }()

	document, err := filepath.Abs("../../../docs/store.md")
	require.NoError(t, err)
	var folded, byPackage float64
	queries := 0
	for line := range strings.Lines(requireRun(t, app, nil, "node", "query.js", document, dir)) {
		var answer struct {
			Statement string
			Rows      []map[string]any
		}
		require.NoError(t, json.Unmarshal([]byte(line), &answer))
		if strings.Contains(answer.Statement, "CREATE VIEW") {
			continue
		}
		queries++
		if !strings.Contains(answer.Statement, "TIMESTAMP '2026-") { // those of a certain day may have none
			require.NotEmpty(t, answer.Rows, answer.Statement)
		}
		for _, row := range answer.Rows {
			if strings.Contains(answer.Statement, "list_reverse") {
				var value json.Number = json.Number(row["value"].(string))
				n, err := value.Float64()
				require.NoError(t, err)
				folded += n
			}
			if strings.Contains(answer.Statement, "list_filter") && row["service_name"] == "shop" {
				byPackage, _ = row["seconds"].(float64)
			}
		}
	}
	require.Equal(t, 10, queries)
	g, err := s.FlameGraph(t.Context(), store.Selection{Service: "shop", Profile: "process_cpu"}, 1000)
	require.NoError(t, err)
	require.InDelta(t, float64(g.Total[0]), folded, 1)
	require.InDelta(t, float64(g.Total[0])/2e9, byPackage, 1e-6)
}
