// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package clickhousetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/clickhouse"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// names are the columns of Columns.
var names = strings.Split(
	"ServiceName, ScopeName, ScopeVersion, ResourceAttributes, ProfileAttributes, SampleAttributes, SampleType, SampleUnit, "+
		"PeriodType, PeriodUnit, Period, Timestamp, DurationNano, TraceId, SpanId, Values, TimestampsUnixNano, FunctionNames, FileNames, "+
		"MappingFileNames, LineNumbers, Addresses", ", ")

// Table is a table that gets the rows of profiles as the exporter writes them.
type Table struct {
	*Server
	name string
	rows bytes.Buffer
}

// NewTable makes the table of config/backends/clickhouse-table.sql by another name. It keeps rows of any age: tests
// have fixed times.
func NewTable(t testing.TB, s *Server, name string) *Table {
	t.Helper()
	ddl := statements(t, "config/backends/clickhouse-table.sql")
	require.Len(t, ddl, 1)
	sql := strings.Replace(ddl[0], "CREATE TABLE otel_profiles", "CREATE TABLE "+name, 1)
	before, after, found := strings.Cut(sql, "TTL toDateTime(Timestamp) + INTERVAL 14 DAY\nSETTINGS ")
	require.True(t, found, sql)
	s.Query(t, before+"SETTINGS "+strings.Replace(after, ", ttl_only_drop_parts = 1", "", 1), "Native")
	return &Table{Server: s, name: name}
}

// statements returns the statements of a file of SQL.
func statements(t testing.TB, file string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(collectortest.Repository, file))
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(strings.TrimSpace(string(text)), ";"), ";\n")
}

// Add adds profiles to what Insert inserts.
func (table *Table) Add(t testing.TB, pd pprofile.Profiles) {
	t.Helper()
	rows := map[string]int{}
	RowsOf(t, rows, pd)
	for row, n := range rows {
		for range n {
			var values []any
			require.NoError(t, json.Unmarshal([]byte(row), &values))
			// The time is in nanoseconds.
			nanos := values[11].(string)
			if len(nanos) > 9 {
				values[11] = nanos[:len(nanos)-9] + "." + nanos[len(nanos)-9:]
			}
			require.NoError(t, json.NewEncoder(&table.rows).Encode(values))
		}
	}
}

// Insert inserts all rows.
func (table *Table) Insert(t testing.TB) {
	t.Helper()
	file := filepath.Join(table.dir, "rows.json")
	require.NoError(t, os.WriteFile(file, table.rows.Bytes(), 0o600))
	table.rows.Reset()
	columns := strings.Join(names, ", ")
	table.Query(t, "INSERT INTO "+table.name+" ("+columns+") SELECT "+columns+" FROM file("+literal(file)+
		", 'JSONCompactEachRow', "+
		literal("ServiceName String, ScopeName String, ScopeVersion String, ResourceAttributes Map(String, String), ProfileAttributes Map(String, String), "+
			"SampleAttributes Map(String, String), SampleType String, SampleUnit String, PeriodType String, PeriodUnit String, Period Int64, "+
			"Timestamp DateTime64(9), DurationNano UInt64, TraceId String, SpanId String, Values Array(Int64), TimestampsUnixNano Array(UInt64), "+
			"FunctionNames Array(String), FileNames Array(String), MappingFileNames Array(String), LineNumbers Array(Int32), Addresses Array(UInt64)")+")", "Native")
}

// Source returns a source of the last hundred hours before now.
func (table *Table) Source(t testing.TB, now time.Time) *answers.EngineSource {
	t.Helper()
	e, err := clickhouse.New(clickhouse.Config{
		Client: http.DefaultClient, Endpoint: table.URL, Database: "default", Table: table.name, MaxResultRows: 1_000_000,
		MaxResultBytes: 1 << 30,
	})
	require.NoError(t, err)
	return answers.NewEngineSource(e, 100*time.Hour, 10*time.Second, func() time.Time { return now })
}

// Columns are what the table has of a sample, in the order of RowsOf.
const Columns = `ServiceName, ScopeName, ScopeVersion, ResourceAttributes, ProfileAttributes, SampleAttributes, SampleType, SampleUnit,
	PeriodType, PeriodUnit, toString(Period), toString(toUnixTimestamp64Nano(Timestamp)), toString(DurationNano),
	TraceId, SpanId,
	arrayMap(v -> toString(v), Values), arrayMap(v -> toString(v), TimestampsUnixNano),
	FunctionNames, FileNames, MappingFileNames, arrayMap(v -> toString(v), LineNumbers), arrayMap(v -> toString(v), Addresses)`

// RowsOf returns the rows that profiles make, as JSON, and how often each is there.
func RowsOf(t testing.TB, rows map[string]int, pd pprofile.Profiles) {
	t.Helper()
	texts := func(m pcommon.Map) map[string]string {
		list := map[string]string{}
		for key, value := range m.All() {
			list[key] = value.AsString()
		}
		return list
	}
	add := func(resource pcommon.Map, scope pcommon.InstrumentationScope, p pprofile.Profile) {
		d := pd.Dictionary()
		str := func(i int32) string { return d.StringTable().At(int(i)) }
		attributes := func(from interface{ AttributeIndices() pcommon.Int32Slice }) map[string]string {
			m, err := pprofile.FromAttributeIndices(d.AttributeTable(), from, d)
			require.NoError(t, err)
			return texts(m)
		}
		service, _ := resource.Get("service.name")
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
				service.AsString(), scope.Name(), scope.Version(), texts(resource), attributes(p), attributes(s),
				str(p.SampleType().TypeStrindex()),
				str(p.SampleType().UnitStrindex()), str(p.PeriodType().TypeStrindex()), str(p.PeriodType().UnitStrindex()),
				strconv.FormatInt(p.Period(), 10), strconv.FormatUint(uint64(p.Time()), 10),
				strconv.FormatUint(p.DurationNano(), 10),
				link.TraceID().String(), link.SpanID().String(), decimals(s.Values().AsRaw()),
				decimals(s.TimestampsUnixNano().AsRaw()),
				functions, files, mappings, lines, addresses,
			})
			require.NoError(t, err)
			rows[string(row)]++
		}
	}
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				add(rp.Resource().Attributes(), sp.Scope(), p)
			}
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
