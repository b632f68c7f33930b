// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	engine "github.com/otelcol-profiles/otelcol-profiles/internal/store/clickhouse"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/storetest"
)

// clickhouseNames are the columns of clickhouseColumns.
var clickhouseNames = strings.Split("ServiceName, ScopeName, ScopeVersion, ResourceAttributes, ProfileAttributes, SampleAttributes, SampleType, SampleUnit, "+
	"PeriodType, PeriodUnit, Period, Timestamp, DurationNano, TraceId, SpanId, Values, TimestampsUnixNano, FunctionNames, FileNames, "+
	"MappingFileNames, LineNumbers, Addresses", ", ")

// clickhouseTable is a table that gets the rows of profiles as the exporter writes them.
type clickhouseTable struct {
	*clickhouse
	name string
	rows bytes.Buffer
}

// add adds profiles to what insert inserts.
func (c *clickhouseTable) add(t *testing.T, pd pprofile.Profiles) {
	t.Helper()
	rows := map[string]int{}
	rowsOf(t, rows, pd)
	for row, n := range rows {
		for range n {
			var values []any
			require.NoError(t, json.Unmarshal([]byte(row), &values))
			// The time is in nanoseconds.
			nanos := values[11].(string)
			if len(nanos) > 9 {
				values[11] = nanos[:len(nanos)-9] + "." + nanos[len(nanos)-9:]
			}
			require.NoError(t, json.NewEncoder(&c.rows).Encode(values))
		}
	}
}

func (c *clickhouseTable) insert(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	file := filepath.Join(c.dir, "rows.json")
	require.NoError(t, os.WriteFile(file, c.rows.Bytes(), 0o600))
	c.rows.Reset()
	names := strings.Join(clickhouseNames, ", ")
	_, err := c.engine.query("INSERT INTO "+c.name+" ("+names+") SELECT "+names+" FROM file("+literal(file)+", 'JSONCompactEachRow', "+
		literal("ServiceName String, ScopeName String, ScopeVersion String, ResourceAttributes Map(String, String), ProfileAttributes Map(String, String), "+
			"SampleAttributes Map(String, String), SampleType String, SampleUnit String, PeriodType String, PeriodUnit String, Period Int64, "+
			"Timestamp DateTime64(9), DurationNano UInt64, TraceId String, SpanId String, Values Array(Int64), TimestampsUnixNano Array(UInt64), "+
			"FunctionNames Array(String), FileNames Array(String), MappingFileNames Array(String), LineNumbers Array(Int32), Addresses Array(UInt64)")+")", "Native")
	require.NoError(t, err)
}

// source returns a source of the table, whose now is some time after what it has.
func (c *clickhouseTable) source(t *testing.T, endpoint string, now time.Time) *store.EngineSource {
	t.Helper()
	e, err := engine.New(engine.Config{
		Client: http.DefaultClient, Endpoint: endpoint, Database: "default", Table: c.name, MaxResultRows: 1_000_000, MaxResultBytes: 1 << 30,
	})
	require.NoError(t, err)
	return store.NewEngineSource(e, 100*time.Hour, 10*time.Second, func() time.Time { return now })
}

// statements returns the statements of a file of SQL.
func statements(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, file))
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(strings.TrimSpace(string(text)), ";"), ";\n")
}

// clickhouseConforms holds a table to what every source does: make makes a table of a name.
func clickhouseConforms(t *testing.T, server *clickhouse, endpoint string, create func(name string) string) {
	t.Helper()
	table := func(name string) *clickhouseTable {
		server.mu.Lock()
		defer server.mu.Unlock()
		_, err := server.engine.query(create(name), "Native")
		require.NoError(t, err)
		return &clickhouseTable{clickhouse: server, name: name}
	}
	memory := func() *store.Store {
		return store.New(store.Config{Window: 100 * time.Hour, Resolution: 10 * time.Second, MaxBytes: 64 << 20, MaxSeries: 100})
	}
	now := storetest.Noon.Add(72 * time.Hour)
	for seed := range uint64(1) {
		m, c := memory(), table(fmt.Sprint("rules", seed))
		storetest.SumsFollowTheRules(t, seed, map[string]*storetest.Kept{
			"memory": {Source: m, Add: func(pd pprofile.Profiles, arrived time.Time) { m.Add(pd, arrived) }},
			"ClickHouse": {
				Source: c.source(t, endpoint, now), Add: func(pd pprofile.Profiles, _ time.Time) { c.add(t, pd) },
				Finish: func(time.Time) { c.insert(t) },
			},
		})
	}
	m, c := memory(), table("answers")
	h := &storetest.History{Rand: rand.New(rand.NewPCG(1, 2)), Texts: true}
	for i := range 100 {
		at := storetest.Noon.Add(time.Duration(i) * 20 * time.Minute)
		h.Send(at, func(pd pprofile.Profiles, arrived time.Time) {
			m.Add(pd, arrived)
			c.add(t, pd)
		})
	}
	c.insert(t)
	source := c.source(t, endpoint, now)
	for _, span := range [][2]time.Duration{{0, 34 * time.Hour}, {50 * time.Minute, 130 * time.Minute}} {
		from, until := storetest.Noon.Add(span[0]).UnixNano(), storetest.Noon.Add(span[1]).UnixNano()
		want, got := strings.Split(storetest.Answers(t, m, from, until), "\n"), strings.Split(storetest.Answers(t, source, from, until), "\n")
		for i := range min(len(want), len(got)) {
			require.Equal(t, want[i], got[i], "%v, line %d", span, i)
		}
		require.Equal(t, len(want), len(got))
	}
}

// clickhousePage compares the answers of a page in front of the table with those of a store that has the same profiles.
func clickhousePage(t *testing.T, server *clickhouse, endpoint string, profiles map[string][]pprofile.Profiles) {
	t.Helper()
	m := store.New(store.Config{Window: 10 * 365 * 24 * time.Hour, Resolution: 10 * time.Second, MaxBytes: 64 << 20, MaxSeries: 1000})
	for _, list := range profiles {
		for _, pd := range list {
			require.Zero(t, m.Add(pd, time.Now()).Refused)
		}
	}
	page := launchWith(t, "config/backends/clickhouse-page.yaml", nil, "CLICKHOUSE_HTTP="+endpoint, "PAGE_WINDOW=87600h")
	get := func(path string) []byte {
		response, err := http.Get("http://" + page.graphs + path)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, body)
		return body
	}
	infos, err := m.Catalog(t.Context(), "", nil)
	require.NoError(t, err)
	require.NotEmpty(t, infos)
	for _, in := range infos {
		sel := store.Selection{Service: in.Service, Profile: in.Profile, Type: in.Type.String()}
		table, err := m.FlameGraph(t.Context(), sel, 100_000)
		require.NoError(t, err)
		want := map[string][2]int64{}
		for _, row := range table.Functions() {
			if row.Frame.Kind != "group" {
				sums := want[row.Frame.Name]
				want[row.Frame.Name] = [2]int64{sums[0] + row.Self, max(sums[1], row.Total)}
			}
		}
		var answer struct {
			Functions []struct {
				Name        string
				Self, Total int64
			}
		}
		query := url.Values{"service": {in.Service}, "profile": {in.Profile}, "type": {in.Type.String()}, "limit": {"10000"}}
		require.NoError(t, json.Unmarshal(get("/api/table?"+query.Encode()), &answer))
		got := map[string][2]int64{}
		for _, row := range answer.Functions {
			sums := got[row.Name]
			got[row.Name] = [2]int64{sums[0] + row.Self, max(sums[1], row.Total)}
		}
		require.Equal(t, want, got, "%v", sel)
	}
	server.setAway(true)
	response, err := http.Get("http://" + page.graphs + "/api/services")
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.Contains(t, string(text), "the engine is away")
	server.setAway(false)
	page.Terminate(t)
}

// TestClickHousePageConfig runs config/backends/clickhouse-page.yaml in front of an empty table.
func TestClickHousePageConfig(t *testing.T) {
	t.Parallel()
	const config = "config/backends/clickhouse-page.yaml"
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	requireValid(t, config)
	c := launch(t, config, "CLICKHOUSE_HTTP="+server.URL)
	response, err := http.Get("http://" + c.graphs + "/api/services")
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.JSONEq(t, `{"services": []}`, string(text))
	c.Terminate(t)
}

// TestClickHouseSource holds the table of config/backends/clickhouse-table.sql to what every source does.
func TestClickHouseSource(t *testing.T) {
	app := installNPM(t, "E2E_CLICKHOUSE", "clickhouse")
	server, endpoint := startClickHouse(t, startClickHouseEngine(t, app, app))
	ddl := statements(t, "config/backends/clickhouse-table.sql")
	require.Len(t, ddl, 1)
	clickhouseConforms(t, server, strings.TrimSuffix(endpoint, "?compress=none"), func(name string) string {
		return strings.Replace(ddl[0], "CREATE TABLE otel_profiles", "CREATE TABLE "+name, 1)
	})
}
