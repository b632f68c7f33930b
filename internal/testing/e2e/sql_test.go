// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// sqlDocument has the SQL for people.
const sqlDocument = "docs/sql.md"

// sqlQueries returns the statements of the blocks of one kind in sqlDocument.
func sqlQueries(t *testing.T, kind string) (list []string) {
	t.Helper()
	text := profiletest.FileBytes(t, filepath.Join(repository, sqlDocument))
	for _, block := range regexp.MustCompile("(?s)```sql ?([^\n]*)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for statement := range strings.SplitSeq(block[2], ";\n") {
			if block[1] == kind && strings.TrimSpace(statement) != "" {
				list = append(list, strings.TrimSpace(statement))
			}
		}
	}
	return list
}

// sqlEnd returns the end of sqlProfiles, of which none is at the edge of a day from now. A test that makes them twice
// asks once: they name the day, and a second later it may be another one.
func sqlEnd() time.Time { return time.Now().Add(-10 * time.Minute) }

// sqlProfiles returns the profiles of two services over forty hours, with the times at which they arrive.
func sqlProfiles(end time.Time, add func(pd pprofile.Profiles, arrived time.Time)) {
	trace := [16]byte{0x5b, 0x8e, 0xff, 0xf7, 0x98, 0x03, 0x81, 0x03, 0xd2, 0x69, 0xb6, 0x33, 0x81, 0x3f, 0xc6, 0x0c}
	for now := end.Add(-40 * time.Hour); now.Before(end); now = now.Add(20 * time.Minute) {
		for i, service := range []string{"shop", "cart"} {
			value := int64(i+1) * 1e9
			add(profiletest.New().Resource("service.name", service, "service.version", now.Format("2"), "k8s.pod.name",
				service+"-1", "from", "sql").
				Profile("cpu", "nanoseconds").Time(uint64(now.UnixNano()), 10e9).Sample(
				profiletest.Value(value, "encoding/json.Marshal", "handle", "main").With(profiletest.Attr("endpoint", "/cart")),
				profiletest.Value(value, "leaf", "main").Linked(trace, [8]byte{1})).
				Profile("inuse_space", "bytes").Time(uint64(now.UnixNano()), 0).Sample(profiletest.Value(1000, "leaf", "main")).
				Build(), now.Add(10*time.Second))
		}
	}
}

// sqlStore returns a store that has sqlProfiles in blocks in a directory.
func sqlStore(t *testing.T, end time.Time) (s *store.Store, dir string) {
	t.Helper()
	dir = t.TempDir()
	s = store.New(store.Config{
		Window: time.Hour, Resolution: time.Second, MaxBytes: 64 << 20, MaxSeries: 100,
		Disk: store.DiskConfig{Directory: dir, Retention: 1000 * time.Hour, MaxBytes: 1 << 30,
			Report: func(string, error) {}},
	})
	require.NoError(t, s.Open())
	sqlProfiles(end, func(pd pprofile.Profiles, arrived time.Time) {
		s.Add(pd, arrived)
		s.Maintain(arrived)
	})
	s.Maintain(time.Now().Add(2 * time.Hour)) // so that everything is in blocks
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s, dir
}

// allocates adds totals of a process that had allocated much before the first one, and 3,000 bytes since then.
func allocates(s *store.Store) {
	for i := range 4 {
		now := time.Now().Add(time.Duration(i-8) * time.Minute)
		s.Add(profiletest.New().Resource("service.name", "shop").Profile("alloc_space", "bytes").
			Time(uint64(now.UnixNano()), 0).Sample(profiletest.Value(int64(1<<40+1000*i), "leaf", "main")).Build(), now)
	}
	s.Maintain(time.Now().Add(2 * time.Hour))
}

// sqlRow returns a row in a form in which engines can be compared: they print numbers in several ways.
func sqlRow(row []any) string {
	texts := make([]string, len(row))
	for i, value := range row {
		texts[i] = fmt.Sprint(value)
		if n, err := strconv.ParseFloat(texts[i], 64); err == nil {
			texts[i] = strconv.FormatFloat(n, 'g', 12, 64)
		}
	}
	return strings.Join(texts, " | ")
}

// duckdbRows runs SQL in a directory by DuckDB, and returns the rows of each query.
func duckdbRows(t *testing.T, app, dir, kinds string) (answers map[string][]string) {
	t.Helper()
	document, err := filepath.Abs(filepath.Join(repository, sqlDocument))
	require.NoError(t, err)
	answers = map[string][]string{}
	for line := range strings.Lines(requireRun(t, app, nil, "node", "query.js", document, dir, kinds)) {
		var answer struct {
			Statement string
			Rows      [][]any
		}
		require.NoError(t, json.Unmarshal([]byte(line), &answer))
		rows := []string{}
		for _, row := range answer.Rows {
			rows = append(rows, sqlRow(row))
		}
		answers[answer.Statement] = rows
	}
	return answers
}

// TestSQL runs the SQL of docs/sql.md over the blocks of two days, by DuckDB from npm. Its sums are those of the store.
func TestSQL(t *testing.T) {
	t.Parallel()
	app := installNPM(t, "E2E_SQL", "duckdb")
	s, dir := sqlStore(t, sqlEnd())
	allocates(s)
	answers := duckdbRows(t, app, dir, "duckdb,,duckdb-only")
	queries := slices.Concat(sqlQueries(t, ""), sqlQueries(t, "duckdb-only"))
	require.Len(t, queries, 12)
	for _, query := range queries {
		require.NotEmpty(t, answers[query], query)
	}
	g, err := s.FlameGraph(t.Context(), model.Selection{Service: "shop", Profile: "process_cpu"}, 1000)
	require.NoError(t, err)
	total := float64(g.Total[0])
	for i, query := range queries {
		switch {
		case strings.Contains(query, "as folded stacks"):
			require.Equal(t,
				[]string{sqlRow([]any{"main;handle;encoding/json.Marshal", total / 2}), sqlRow([]any{"main;leaf", total / 2})},
				answers[query])
		case strings.Contains(query, "Who allocates"):
			require.Equal(t, []string{sqlRow([]any{"shop", "leaf", 3000})}, answers[query])
		case strings.Contains(query, "cost of a package"):
			require.Equal(t, []string{sqlRow([]any{"cart", total / 1e9}), sqlRow([]any{"shop", total / 2e9})}, answers[query])
		default:
			t.Logf("%d: %q", i, answers[query][:min(3, len(answers[query]))])
		}
	}
}
