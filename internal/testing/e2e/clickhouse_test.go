// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/clickhousetest"
)

// TestClickHouse runs config/backends/clickhouse.yaml against ClickHouse's engine, with the table that the exporter
// makes, and with that of config/backends/clickhouse-table.sql, which is made after the collector has started. What
// arrives there is all that a table has a place for, also of what was sent while the engine was away and the collector
// was killed: docs/clickhouse.md has what is lost.
func TestClickHouse(t *testing.T) {
	t.Parallel()
	app := clickhousetest.Install(t)
	for name, flags := range map[string]string{"its own table": "{create_schema: true}", "clickhouse-table.sql": "{}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := clickhousetest.Start(t, clickhousetest.StartEngine(t, app, app))
			out, queue := filepath.Join(t.TempDir(), "out"), t.TempDir()
			start := func(flags string) *collector {
				return launchWith(t, "config/backends/clickhouse.yaml", []string{
					`--config=yaml:{exporters: {clickhouse: ` + flags +
						`, file: {path: "${env:PROFILES_OUT}/profiles.jsonl", create_directory: true, append: true}}, ` +
						`service: {pipelines: {profiles: {exporters: [clickhouse, file]}}}}`,
				}, "CLICKHOUSE_ENDPOINT="+server.ExporterEndpoint(), "BATCH_TIMEOUT=50ms", "PROFILES_OUT="+out, "QUEUE_DIRECTORY="+queue)
			}
			received := func() (list []pprofile.Profiles) { return readProfiles(t, out) }
			c := start(flags)
			c.requirePush(t, "shop", capturedPayloads(t)["go-heap.pb.gz"])
			if name == "clickhouse-table.sql" {
				clickhousetest.NewTable(t, server, "otel_profiles")
			}
			sendOTLP(t, c.otlp)
			server.SetAway(true)
			c.requirePush(t, "late", capturedPayloads(t)["go-mutex.pb.gz"])
			require.Eventually(t, func() bool {
				return slices.ContainsFunc(received(), func(pd pprofile.Profiles) bool { return serviceName(t, pd) == "late" })
			}, startTimeout, 50*time.Millisecond)
			c.Kill()
			c = start("{}")
			for _, record := range []string{"v4.11.0-001-cpu-snapshot", "v4.11.0-002-cpu-continuous"} {
				data, err := os.ReadFile(filepath.Join(repository, "testdata", "splunk", record+".otlp-logs.pb"))
				require.NoError(t, err)
				requirePost(t, "http://"+c.splunkHTTP+"/v1/logs", "application/x-protobuf", data)
			}
			server.SetAway(false)
			requireClickHouseHas(t, server, received)
			clickhousePage(t, server, received())
			compareSQL(t, app, server, c)
			c.Terminate(t)
		})
	}
}

// requireClickHouseHas waits until the table has what the pipeline received.
func requireClickHouseHas(t *testing.T, server *clickhousetest.Server, received func() []pprofile.Profiles) {
	t.Helper()
	got, want := map[string]int{}, map[string]int{}
	assert.Eventually(t, func() bool {
		clear(got)
		for line := range strings.Lines(server.Query(t, "SELECT "+clickhousetest.Columns+" FROM otel_profiles",
			"JSONCompactEachRow")) {
			var row any
			require.NoError(t, json.Unmarshal([]byte(line), &row))
			text, err := json.Marshal(row)
			require.NoError(t, err)
			got[string(text)]++
		}
		clear(want)
		for _, pd := range received() {
			clickhousetest.RowsOf(t, want, pd)
		}
		return maps.Equal(want, got)
	}, startTimeout, 200*time.Millisecond)
	require.Equal(t, want, got, "the engine has what arrived")
	for _, service := range []string{"shop", "late", "host"} {
		require.Contains(t, fmt.Sprint(got), `["`+service+`",`)
	}
	t.Logf("%d distinct rows; %s", len(got), server.Query(t,
		`SELECT sum(rows) AS rows, sum(data_compressed_bytes) AS bytes FROM system.parts WHERE table = 'otel_profiles' AND active`, "JSONCompactEachRow"))
}

// compareSQL runs the queries of docs/sql.md on the exporter's table, and on blocks of the same profiles by both
// engines.
func compareSQL(t *testing.T, app string, server *clickhousetest.Server, c *collector) {
	t.Helper()
	end := sqlEnd()
	var sent pprofile.Profiles // in one message: each one that the exporter gets is an insertion
	sqlProfiles(end, func(pd pprofile.Profiles, _ time.Time) {
		if sent == (pprofile.Profiles{}) {
			sent = pd
			return
		}
		require.NoError(t, pd.MergeTo(sent))
	})
	samples := sent.SampleCount()
	require.NoError(t, export(dial(t, c.otlp), sent))
	lines := func(answer string) (list []string) {
		for line := range strings.Lines(answer) {
			var row []any
			require.NoError(t, json.Unmarshal([]byte(line), &row))
			list = append(list, sqlRow(row))
		}
		return list
	}
	inTable := func(sql string) []string { return lines(server.Query(t, sql, "JSONCompactEachRow")) }
	require.Eventually(t, func() bool {
		return slices.Equal(inTable("SELECT count() FROM otel_profiles WHERE ResourceAttributes['from'] = 'sql'"),
			[]string{fmt.Sprint(samples)})
	}, startTimeout, 200*time.Millisecond)
	for _, sql := range []string{
		"CREATE DATABASE people", "CREATE TABLE people.otel_profiles AS otel_profiles",
		"INSERT INTO people.otel_profiles SELECT * FROM otel_profiles WHERE ResourceAttributes['from'] = 'sql'", "USE people",
	} {
		inTable(sql)
	}
	inTable(sqlQueries(t, "clickhouse")[0])
	s, dir := sqlStore(t, end)
	engine := clickhousetest.StartEngine(t, app, dir)
	inFiles := func(sql string) []string {
		data, err := engine.Query(sql, "JSONCompactEachRow")
		require.NoError(t, err, sql)
		return lines(string(data))
	}
	inFiles(sqlQueries(t, "clickhouse-files")[0])
	byDuckDB := duckdbRows(t, installNPM(t, "E2E_CLICKHOUSE", "duckdb"), dir, "duckdb,")
	queries := sqlQueries(t, "")
	require.Len(t, queries, 9)
	for _, query := range queries {
		want := byDuckDB[query]
		require.NotEmpty(t, want, query)
		assert.Equal(t, want, inFiles(query), "ClickHouse, in the directory: %s", query)
		assert.Equal(t, want, inTable(query), "ClickHouse, in the table: %s", query)
	}
	allocates(s)
	assert.Equal(t, []string{sqlRow([]any{3000})}, inFiles("SELECT sum(value) FROM samples WHERE type = 'alloc_space'"))
}
