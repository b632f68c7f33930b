// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package clickhousetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// The day of BenchmarkDay has profiles of ten seconds.
const (
	daySamples = 5_000
	dayStacks  = 10_000
	hourRows   = 360 * daySamples
)

var dayBegins = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// dayStacksSQL makes the stacks of a program: 12 to 44 frames, of 3,000 functions.
const dayStacksSQL = `CREATE TABLE day_stacks ENGINE = MergeTree ORDER BY n AS
WITH 12 + cityHash64(number, 'depth') %% 33 AS depth,
  arrayMap(i -> cityHash64(if(i < depth - intDiv(cityHash64(number, 'shared') %% 100, 3) %% depth, tuple(i, number), tuple(depth - i, number %% 50))) %% 3000, range(depth)) AS f
SELECT toUInt32(number) AS n,
  CAST(arrayMap(x -> concat('example.com/service/internal/package', toString(x %% 97), '.(*Type', toString(x %% 31), ').Method', toString(x)), f), 'Array(LowCardinality(String))') AS FunctionNames,
  CAST(arrayMap(x -> concat('/src/service/internal/package', toString(x %% 97), '/file', toString(x %% 11), '.go'), f), 'Array(LowCardinality(String))') AS FileNames,
  arrayMap(x -> toInt32(x %% 700 + 3), f) AS LineNumbers, arrayMap(x -> toUInt64(0x400000 + x * 16), f) AS Addresses,
  CAST(arrayMap(x -> '/usr/bin/service', f), 'Array(LowCardinality(String))') AS MappingFileNames,
  sipHash128(FunctionNames, FileNames, LineNumbers, Addresses, MappingFileNames) AS StackId
FROM numbers(%d)`

const dayColumns = "Timestamp, SampleType, SampleUnit, ServiceName, ResourceAttributes, ProfileAttributes, Addresses, FunctionNames, FileNames, LineNumbers, " +
	"MappingFileNames, Values, DurationNano, Period, PeriodType, PeriodUnit, ProfileName, SeriesId, StackId"

// firstHourSQL makes an hour of samples of these stacks, furtherHourSQL another one with its stacks and other values,
// and otherServiceSQL the first hour of another service. Hashes are inserted as they would be computed.
const (
	firstHourSQL = `INSERT INTO day (` + dayColumns + `)
WITH map('service.name', 'service0', 'service.version', '1.2.3', 'service.instance.id', 'service-7f9c', 'k8s.pod.name', 'service-abcdef', 'k8s.namespace.name', 'shop',
    'k8s.node.name', 'node-17', 'host.name', 'node-17', 'telemetry.sdk.language', 'go') AS r, map('pprof.scope.profile_name', 'process_cpu') AS p
SELECT fromUnixTimestamp64Nano(toInt64(%d)) + INTERVAL (intDiv(number, %d) * 10) SECOND, 'cpu', 'nanoseconds', 'service0', r, p, Addresses, FunctionNames,
  FileNames, LineNumbers, MappingFileNames, [toInt64(10000000 * (1 + floor(-3 * log(1 - randCanonical()))))], 10000000000, 10000000, 'cpu', 'nanoseconds',
  'process_cpu', sipHash128('service0', mapSort(r), mapSort(p)), StackId
FROM (SELECT number, toUInt32(pow(randCanonical(), 3) * %d) AS n FROM numbers(%d)) AS x INNER JOIN day_stacks USING n` + dayInsert
	furtherHourSQL = `INSERT INTO day (` + dayColumns + `)
SELECT Timestamp + INTERVAL %d HOUR, SampleType, SampleUnit, ServiceName, ResourceAttributes, ProfileAttributes, Addresses, FunctionNames, FileNames, LineNumbers,
  MappingFileNames, [toInt64(10000000 * (1 + (rand32(%[1]d) %% 4) * (rand32(100 + %[1]d) %% 3)))], DurationNano, Period, PeriodType, PeriodUnit, ProfileName,
  SeriesId, StackId FROM day WHERE ServiceName = 'service0' AND Timestamp < fromUnixTimestamp64Nano(toInt64(%[2]d))` + dayInsert
	otherServiceSQL = `INSERT INTO day (` + dayColumns + `)
SELECT * REPLACE ('%s' AS ServiceName, sipHash128('%[1]s', SeriesId) AS SeriesId) FROM (SELECT ` + dayColumns + ` FROM day
  WHERE ServiceName = 'service0' AND Timestamp < fromUnixTimestamp64Nano(toInt64(%[2]d)))` + dayInsert
	dayInsert = `
SETTINGS insert_allow_materialized_columns = 1, max_insert_threads = 1, min_insert_block_size_rows = 2000000, min_insert_block_size_bytes = 4000000000, max_insert_block_size = 2000000`
)

// BenchmarkDay asks for flame graphs of the last CLICKHOUSE_HOURS (1) of a service, 1.8 million samples an hour, which
// are made in the engine. CLICKHOUSE_SERVICES (1) is how many services there are: the others have one hour.
// CLICKHOUSE_DATA is a folder that keeps all for another run.
func BenchmarkDay(b *testing.B) {
	app := Install(b)
	number := func(name string) int {
		n, err := strconv.Atoi(os.Getenv(name))
		if err != nil {
			return 1
		}
		return n
	}
	hours := number("CLICKHOUSE_HOURS")
	data := os.Getenv("CLICKHOUSE_DATA")
	if data == "" {
		data = filepath.Join(b.TempDir(), "data")
	}
	server := Start(b, startEngine(b, app, app, data))
	query := func(sql string, values ...any) string {
		return strings.TrimSpace(server.Query(b, fmt.Sprintf(sql, values...), "TSV"))
	}
	if query("EXISTS TABLE day") == "0" {
		query(dayStacksSQL, dayStacks)
		NewTable(b, server, "day")
	}
	table := &Table{Server: server, name: "day"}
	hoursOf := func(service string) int {
		rows, err := strconv.Atoi(query("SELECT count() FROM day WHERE ServiceName = '%s'", service))
		require.NoError(b, err)
		return rows / hourRows
	}
	for hour := hoursOf("service0"); hour < hours; hour++ {
		start := time.Now()
		if hour == 0 {
			query(firstHourSQL, dayBegins.UnixNano(), daySamples, dayStacks, hourRows)
		} else {
			query(furtherHourSQL, hour, dayBegins.Add(time.Hour).UnixNano())
		}
		b.Logf("hour %d: %s", hour, time.Since(start))
	}
	for i := 1; i < number("CLICKHOUSE_SERVICES"); i++ {
		if service := fmt.Sprint("service", i); hoursOf(service) == 0 {
			query(otherServiceSQL, service, dayBegins.Add(time.Hour).UnixNano())
		}
	}
	b.Logf("rows, bytes, parts: %s; of projections: %s", query("SELECT sum(rows), sum(data_compressed_bytes), count() FROM system.parts WHERE table = 'day' AND active"),
		strings.ReplaceAll(query("SELECT name, sum(rows), sum(data_compressed_bytes), count() FROM system.projection_parts WHERE table = 'day' AND active GROUP BY name ORDER BY name"), "\n", "; "))
	end := dayBegins.Add(time.Duration(hours) * time.Hour)
	source := table.Source(b, end.Add(time.Minute))
	for name, cut := range map[string]time.Duration{"whole hours": 0, "from and until half past": 30 * time.Minute} {
		sel := model.Selection{Service: "service0", Profile: "process_cpu", From: dayBegins.Add(cut).UnixNano(), Until: end.Add(-cut).UnixNano()}
		b.Run(name, func(b *testing.B) {
			graph := func() {
				g, err := source.FlameGraph(b.Context(), sel, 10_000)
				require.NoError(b, err)
				require.Positive(b, g.Total[0])
			}
			graph()
			before := server.engine.took
			for b.Loop() {
				graph()
			}
			b.ReportMetric((server.engine.took-before).Seconds()/float64(b.N), "engine-s/op")
			server.observe = func(sql string, took time.Duration, n int) {
				b.Logf("%6.0f ms, %9d bytes: %.50s", 1000*took.Seconds(), n, sql)
			}
			graph()
			server.observe = nil
		})
	}
}
