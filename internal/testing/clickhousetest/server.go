// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package clickhousetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Server speaks as much of ClickHouse's protocol over HTTP as the exporter and the page need. It has an engine, or
// keeps what is inserted.
type Server struct {
	// URL is its address.
	URL string

	mu     sync.Mutex
	engine *Engine
	// table is the statement that makes the table of a server without an engine.
	table    string
	inserted []string
	dir      string
	// isAway makes it refuse everything.
	isAway bool
	// projections are those that queries have read, or are nil if nobody asks.
	projections map[string]bool
	// observe is called after each query of profiles, if it is not nil.
	observe func(sql string, took time.Duration, answerBytes int)
}

// Start starts a server of an engine, which may be nil.
func Start(t testing.TB, engine *Engine) *Server {
	t.Helper()
	s := &Server{engine: engine, dir: t.TempDir(), table: statements(t, "config/backends/clickhouse-table.sql")[0]}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// ExporterEndpoint is the address as the exporter takes it.
func (s *Server) ExporterEndpoint() string { return s.URL + "?compress=none" }

// SetAway makes the server refuse everything, or answer again.
func (s *Server) SetAway(isAway bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isAway = isAway
}

// Inserted returns what was inserted into a server without an engine.
func (s *Server) Inserted() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.inserted, "")
}

// Query lets the engine answer.
func (s *Server) Query(t testing.TB, sql, format string) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := s.engine.Query(sql, format)
	require.NoError(t, err, sql)
	return string(data)
}

// Projections calls run, and returns which projections its queries read.
func (s *Server) Projections(run func()) []string {
	s.mu.Lock()
	s.projections = map[string]bool{}
	s.mu.Unlock()
	run()
	s.mu.Lock()
	defer s.mu.Unlock()
	found := slices.Sorted(maps.Keys(s.projections))
	s.projections = nil
	return found
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var answer []byte
	if sql := r.URL.Query().Get("query"); strings.HasPrefix(sql, "SELECT") {
		answer, err := s.selects(r, sql)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			answer = []byte(err.Error())
		}
		_, _ = w.Write(answer)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err == nil && s.isAway {
		err = errAway
	}
	if err == nil {
		answer, err = s.answer(r.URL.Query().Get("query"), body)
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

// reads is a projection in a plan: a table has its database before its name.
var reads = regexp.MustCompile(`ReadFromMergeTree \((\w+)\)`)

// selects answers a query with parameters, settings and a table of its own, as a server does.
func (s *Server) selects(r *http.Request, sql string) ([]byte, error) {
	if s.isAway {
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
			file := filepath.Join(s.dir, "table.rows")
			if err := os.WriteFile(file, rows, 0o600); err != nil {
				return nil, err
			}
			sql = "WITH " + table + " AS (SELECT * FROM file(" + literal(file) + ", 'RowBinary', " + literal(value) + ")) " + sql
		case slices.Contains([]string{"max_execution_time", "max_result_rows", "max_result_bytes", "result_overflow_mode",
			"optimize_functions_to_subcolumns"}, key):
			settings = append(settings, key+" = "+literal(value))
		}
	}
	if len(parameters) > 0 {
		if _, err := s.engine.Query("SET "+strings.Join(parameters, ", "), "Native"); err != nil {
			return nil, err
		}
	}
	sql += " SETTINGS " + strings.Join(settings, ", ")
	if s.projections != nil {
		plan, err := s.engine.Query("EXPLAIN "+sql, "TSVRaw")
		if err != nil {
			return nil, err
		}
		for _, read := range reads.FindAllSubmatch(plan, -1) {
			s.projections[string(read[1])] = true
		}
	}
	before := s.engine.took
	answer, err := s.engine.Query(sql, r.URL.Query().Get("default_format"))
	if s.observe != nil {
		s.observe(sql, s.engine.took-before, len(answer))
	}
	return answer, err
}

// answer answers a query. A query in the URL has the rows to insert as its body.
func (s *Server) answer(insert string, body []byte) ([]byte, error) {
	sql := string(body)
	switch {
	case strings.Contains(sql, "displayName()"):
		// The client reads this as of the newest protocol, and what follows as of the revision in it. The engine writes that
		// of 0.
		return append([]byte{1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0}, nativeRow(true, "test", "26.7.2.1", uint32(0), "UTC")...),
			nil
	case insert == "" && s.engine != nil:
		return s.engine.Query(sql, "Native")
	case insert == "" && strings.Contains(sql, "DESCRIBE"):
		return describe(s.table), nil
	case s.engine == nil:
		s.inserted = append(s.inserted, sql)
		return nil, nil
	}
	file := filepath.Join(s.dir, "rows.native")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return nil, err
	}
	insert, _, isNative := strings.Cut(insert, " FORMAT Native")
	if !isNative {
		return nil, fmt.Errorf("no Native: %s", insert)
	}
	return s.engine.Query(insert+" SELECT * FROM file('"+file+"', 'Native')", "Native")
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
	for _, column := range regexp.MustCompile("(?m)^ +`?([\\w.]+)`? (.+?) (CODEC|MATERIALIZED|EPHEMERAL)").
		FindAllStringSubmatch(table, -1) {
		kind := ""
		if column[3] != "CODEC" {
			kind = column[3]
		}
		blocks = append(blocks, nativeRow(false, column[1], column[2], kind, "", "", "", "")...)
	}
	return blocks
}
