// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// clickhouse speaks as much of ClickHouse's protocol over HTTP as the exporter needs. It has an engine, or keeps what is inserted.
type clickhouse struct {
	mu     sync.Mutex
	engine *clickhouseEngine
	// table is the statement that made the table.
	table    string
	inserted []string
	dir      string
	// isAway makes it refuse everything.
	isAway bool
	// selected are the queries so far.
	selected []string
}

func startClickHouse(t *testing.T, engine *clickhouseEngine) (c *clickhouse, endpoint string) {
	t.Helper()
	c = &clickhouse{engine: engine, dir: t.TempDir()}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return c, server.URL + "?compress=none"
}

func (c *clickhouse) setAway(isAway bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isAway = isAway
}

func (c *clickhouse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var answer []byte
	if sql := r.URL.Query().Get("query"); strings.HasPrefix(sql, "SELECT") {
		answer, err := c.selects(r, sql)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			answer = []byte(err.Error())
		}
		_, _ = w.Write(answer)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err == nil && c.isAway {
		err = errAway
	}
	if err == nil {
		answer, err = c.answer(r.URL.Query().Get("query"), body)
	}
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		answer = []byte(err.Error())
	}
	_, _ = w.Write(answer)
}

var errAway = errors.New("Code: 210. DB::Exception: the engine is away")

// literal is a text in SQL.
func literal(s string) string {
	return "'" + strings.NewReplacer("\\", `\\`, "'", `\'`).Replace(s) + "'"
}

// selects answers a query with parameters, settings and a table of its own, as a server does.
func (c *clickhouse) selects(r *http.Request, sql string) ([]byte, error) {
	if c.isAway {
		return nil, errAway
	}
	var settings, parameters []string
	for key, values := range r.URL.Query() {
		value := values[0]
		name, isParameter := strings.CutPrefix(key, "param_")
		table, isTable := strings.CutSuffix(key, "_structure")
		switch {
		case isParameter:
			parameters = append(parameters, "param_"+name+" = "+literal(value))
		case isTable:
			part, _, err := r.FormFile(table)
			if err != nil {
				return nil, err
			}
			rows, err := io.ReadAll(part)
			if err != nil {
				return nil, err
			}
			file := filepath.Join(c.dir, "table.rows")
			if err := os.WriteFile(file, rows, 0o600); err != nil {
				return nil, err
			}
			sql = "WITH " + table + " AS (SELECT * FROM file(" + literal(file) + ", 'RowBinary', " + literal(value) + ")) " + sql
		case slices.Contains([]string{"max_execution_time", "max_result_rows", "max_result_bytes", "result_overflow_mode"}, key):
			settings = append(settings, key+" = "+literal(value))
		}
	}
	c.selected = append(c.selected, sql)
	if len(parameters) > 0 {
		if _, err := c.engine.query("SET "+strings.Join(parameters, ", "), "Native"); err != nil {
			return nil, err
		}
	}
	return c.engine.query(sql+" SETTINGS "+strings.Join(settings, ", "), r.URL.Query().Get("default_format"))
}

// answer answers a query. A query in the URL has the rows to insert as its body.
func (c *clickhouse) answer(insert string, body []byte) ([]byte, error) {
	sql := string(body)
	switch {
	case strings.Contains(sql, "displayName()"):
		// The client reads this as of the newest protocol, and what follows as of the revision in it. The engine writes that of 0.
		return append([]byte{1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0}, nativeRow(true, "test", "26.7.2.1", uint32(0), "UTC")...), nil
	case insert == "" && c.engine != nil:
		return c.engine.query(sql, "Native")
	case insert == "" && strings.Contains(sql, "DESCRIBE"):
		return describe(c.table), nil
	case insert == "":
		c.table = sql
		return nil, nil
	case c.engine == nil:
		c.inserted = append(c.inserted, sql)
		return nil, nil
	}
	file := filepath.Join(c.dir, "rows.native")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return nil, err
	}
	insert, _, isNative := strings.Cut(insert, " FORMAT Native")
	if !isNative {
		return nil, fmt.Errorf("no Native: %s", insert)
	}
	return c.engine.query(insert+" SELECT * FROM file('"+file+"', 'Native')", "Native")
}

// nativeRow is a block of one row in the format Native. isNewest adds what the newest protocol has for each column.
func nativeRow(isNewest bool, values ...any) []byte {
	block := []byte{byte(len(values)), 1}
	text := func(s string) { block = append(binary.AppendUvarint(block, uint64(len(s))), s...) }
	for i, value := range values {
		text(fmt.Sprint("column", i))
		if n, ok := value.(uint32); ok {
			text("UInt32")
			block = binary.LittleEndian.AppendUint32(append(block, 0), n)
			continue
		}
		text("String")
		if isNewest {
			block = append(block, 0)
		}
		text(value.(string))
	}
	return block
}

// describe answers DESCRIBE TABLE from the statement that made the table.
func describe(table string) (blocks []byte) {
	for _, column := range regexp.MustCompile("(?m)^ +`?([\\w.]+)`? (.+?) (CODEC|MATERIALIZED)").FindAllStringSubmatch(table, -1) {
		kind := ""
		if column[3] == "MATERIALIZED" {
			kind = column[3]
		}
		blocks = append(blocks, nativeRow(false, column[1], column[2], kind, "", "", "", "")...)
	}
	return blocks
}

// clickhouseEngine is ClickHouse's engine from npm. It answers one query at a time.
type clickhouseEngine struct {
	input  io.Writer
	output *bufio.Reader
}

// startClickHouseEngine starts the engine that was installed in a folder. Files in queries are relative to dir.
func startClickHouseEngine(t *testing.T, app, dir string) *clickhouseEngine {
	t.Helper()
	node := exec.CommandContext(t.Context(), "node", filepath.Join(app, "engine.js"), filepath.Join(t.TempDir(), "data"))
	node.Dir, node.Stderr = dir, os.Stderr
	input, err := node.StdinPipe()
	require.NoError(t, err)
	output, err := node.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, node.Start())
	t.Cleanup(func() {
		_ = input.Close()
		_ = node.Wait()
	})
	return &clickhouseEngine{input: input, output: bufio.NewReader(output)}
}

func (e *clickhouseEngine) query(sql, format string) ([]byte, error) {
	if err := json.NewEncoder(e.input).Encode(map[string]string{"sql": sql, "format": format}); err != nil {
		return nil, err
	}
	line, err := e.output.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data  []byte
		Error string
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer.Data, nil
}

// clickhouseColumns are what the table has of a sample, in the order of rowsOf.
const clickhouseColumns = `ServiceName, ScopeName, ScopeVersion, ResourceAttributes, ProfileAttributes, SampleAttributes, SampleType, SampleUnit,
	PeriodType, PeriodUnit, toString(Period), toString(toUnixTimestamp64Nano(Timestamp)), toString(DurationNano), TraceId, SpanId,
	arrayMap(v -> toString(v), Values), arrayMap(v -> toString(v), TimestampsUnixNano),
	FunctionNames, FileNames, MappingFileNames, arrayMap(v -> toString(v), LineNumbers), arrayMap(v -> toString(v), Addresses)`

// rowsOf returns the rows that profiles make, as JSON, and how often each is there.
func rowsOf(t *testing.T, rows map[string]int, pd pprofile.Profiles) {
	t.Helper()
	texts := func(m pcommon.Map) map[string]string {
		list := map[string]string{}
		for key, value := range m.All() {
			list[key] = value.AsString()
		}
		return list
	}
	for p := range profilesIn(pd) {
		d := p.dictionary
		str := func(i int32) string { return d.StringTable().At(int(i)) }
		attributes := func(from interface{ AttributeIndices() pcommon.Int32Slice }) map[string]string {
			m, err := pprofile.FromAttributeIndices(d.AttributeTable(), from, d)
			require.NoError(t, err)
			return texts(m)
		}
		service, _ := p.resource.Get("service.name")
		for _, s := range p.Samples().All() {
			functions, files, mappings, lines, addresses := []string{}, []string{}, []string{}, []string{}, []string{}
			frame := func(function, file, mapping string, line int64, address uint64) {
				functions, files, mappings = append(functions, function), append(files, file), append(mappings, mapping)
				lines, addresses = append(lines, strconv.FormatInt(line, 10)), append(addresses, strconv.FormatUint(address, 10))
			}
			for _, i := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
				l := d.LocationTable().At(int(i))
				mapping := str(d.MappingTable().At(int(l.MappingIndex())).FilenameStrindex())
				for _, line := range l.Lines().All() {
					f := d.FunctionTable().At(int(line.FunctionIndex()))
					frame(str(f.NameStrindex()), str(f.FilenameStrindex()), mapping, line.Line(), l.Address())
				}
				if l.Lines().Len() == 0 {
					frame("", "", mapping, 0, l.Address())
				}
			}
			link := d.LinkTable().At(int(s.LinkIndex()))
			row, err := json.Marshal([]any{
				service.AsString(), p.scope.Name(), p.scope.Version(), texts(p.resource), attributes(p.Profile), attributes(s), str(p.SampleType().TypeStrindex()),
				str(p.SampleType().UnitStrindex()), str(p.PeriodType().TypeStrindex()), str(p.PeriodType().UnitStrindex()),
				strconv.FormatInt(p.Period(), 10), strconv.FormatUint(uint64(p.Time()), 10), strconv.FormatUint(p.DurationNano(), 10),
				link.TraceID().String(), link.SpanID().String(), decimals(s.Values().AsRaw()), decimals(s.TimestampsUnixNano().AsRaw()),
				functions, files, mappings, lines, addresses,
			})
			require.NoError(t, err)
			rows[string(row)]++
		}
	}
}

func decimals[T int64 | uint64](list []T) []string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = fmt.Sprint(n)
	}
	return texts
}

// TestClickHouse runs config/backends/clickhouse.yaml against ClickHouse's engine. What arrives there is all that the table has a place
// for, also of what was sent while the engine was away: docs/backends.md has what is lost.
func TestClickHouse(t *testing.T) {
	app := installNPM(t, "E2E_CLICKHOUSE", "clickhouse")
	engine := startClickHouseEngine(t, app, app)
	server, endpoint := startClickHouse(t, engine)
	c := launchWith(t, "config/backends/clickhouse.yaml", []string{
		`--config=yaml:{exporters: {file: {path: "${env:PROFILES_OUT}/profiles.jsonl", create_directory: true}}, ` +
			`service: {pipelines: {profiles: {exporters: [clickhouse, file]}}}}`,
	}, "CLICKHOUSE_ENDPOINT="+endpoint, "BATCH_TIMEOUT=50ms")
	c.requirePush(t, "shop", capturedPayloads(t)["go-heap.pb.gz"])
	sendOTLP(t, c.otlp)
	server.setAway(true)
	c.requirePush(t, "late", capturedPayloads(t)["go-mutex.pb.gz"])
	for _, record := range []string{"v4.11.0-001-cpu-snapshot", "v4.11.0-002-cpu-continuous"} {
		data, err := os.ReadFile(filepath.Join(repository, "testdata", "splunk", record+".otlp-logs.pb"))
		require.NoError(t, err)
		requirePost(t, "http://"+c.splunkHTTP+"/v1/logs", "application/x-protobuf", data)
	}
	server.setAway(false)
	selected := func(sql string) string {
		server.mu.Lock()
		defer server.mu.Unlock()
		data, err := engine.query(sql, "JSONCompactEachRow")
		require.NoError(t, err)
		return string(data)
	}
	want := func() map[string]int {
		rows := map[string]int{}
		for _, list := range c.output(t) {
			for _, pd := range list {
				rowsOf(t, rows, pd)
			}
		}
		return rows
	}
	got := map[string]int{}
	require.Eventually(t, func() bool {
		clear(got)
		for line := range strings.Lines(selected("SELECT " + clickhouseColumns + " FROM otel_profiles")) {
			var row any
			require.NoError(t, json.Unmarshal([]byte(line), &row))
			text, err := json.Marshal(row)
			require.NoError(t, err)
			got[string(text)]++
		}
		return assert.ObjectsAreEqual(want(), got)
	}, startTimeout, 200*time.Millisecond, "the engine has what arrived")
	for _, service := range []string{"shop", "late", "host"} {
		require.Contains(t, fmt.Sprint(got), `["`+service+`",`)
	}
	t.Logf("%d distinct rows; %s", len(got), selected(`SELECT sum(rows) AS rows, sum(data_compressed_bytes) AS bytes FROM system.parts WHERE table = 'otel_profiles' AND active`))
	clickhousePage(t, server, strings.TrimSuffix(endpoint, "?compress=none"), c.output(t))
	compareSQL(t, app, server, c)
	c.Terminate(t)
}

// compareSQL runs the queries of docs/sql.md on the exporter's table, and on blocks of the same profiles by both engines.
func compareSQL(t *testing.T, app string, server *clickhouse, c *collector) {
	t.Helper()
	sent := 0
	connection := dial(t, c.otlp)
	sqlProfiles(func(pd pprofile.Profiles, _ time.Time) {
		require.NoError(t, export(connection, pd))
		sent += pd.SampleCount()
	})
	rows := func(e *clickhouseEngine, sql string) (list []string) {
		server.mu.Lock()
		defer server.mu.Unlock()
		data, err := e.query(sql, "JSONCompactEachRow")
		require.NoError(t, err, sql)
		for line := range strings.Lines(string(data)) {
			var row []any
			require.NoError(t, json.Unmarshal([]byte(line), &row))
			list = append(list, sqlRow(row))
		}
		return list
	}
	require.Eventually(t, func() bool {
		return slices.Equal(rows(server.engine, "SELECT count() FROM otel_profiles WHERE ResourceAttributes['from'] = 'sql'"), []string{fmt.Sprint(sent)})
	}, startTimeout, 200*time.Millisecond)
	for _, sql := range []string{
		"CREATE DATABASE people", "CREATE TABLE people.otel_profiles AS otel_profiles",
		"INSERT INTO people.otel_profiles SELECT * FROM otel_profiles WHERE ResourceAttributes['from'] = 'sql'", "USE people",
	} {
		rows(server.engine, sql)
	}
	rows(server.engine, sqlQueries(t, "clickhouse")[0])
	_, dir := sqlStore(t)
	files := startClickHouseEngine(t, app, dir)
	rows(files, sqlQueries(t, "clickhouse-files")[0])
	byDuckDB := duckdbRows(t, installNPM(t, "E2E_CLICKHOUSE", "duckdb"), dir, "duckdb,")
	queries := sqlQueries(t, "")
	require.Len(t, queries, 9)
	for _, query := range queries {
		want := byDuckDB[query]
		require.NotEmpty(t, want, query)
		assert.Equal(t, want, rows(files, query), "ClickHouse, in the directory: %s", query)
		assert.Equal(t, want, rows(server.engine, query), "ClickHouse, in the table: %s", query)
	}
}
