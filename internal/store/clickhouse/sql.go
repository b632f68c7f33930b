// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package clickhouse

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// columns are the SQL of what identifies rows. Hashes have all that makes a difference: the table's own StackHash has
// not.
type columns struct {
	name, series, stack string
	// hasProjections reports that there are series and stacks by day.
	hasProjections bool
}

// The table's columns, and what is computed of them if the table does not have it.
var (
	computed = columns{
		name:   "ProfileAttributes['pprof.scope.profile_name']",
		series: "sipHash128(ServiceName, mapSort(ResourceAttributes), mapSort(mapFilter((k, v) -> NOT startsWith(k, 'pprof.profile.'), ProfileAttributes)))",
		stack:  "sipHash128(FunctionNames, FileNames, LineNumbers, Addresses, MappingFileNames)",
	}
	stored = columns{name: "ProfileName", series: "SeriesId", stack: "StackId", hasProjections: true}
)

// layout returns the table's columns. It asks until it knows them.
func (e *Engine) layout(ctx context.Context) (columns, error) {
	if found := e.columns.Load(); found != nil {
		return *found, nil
	}
	s := &statement{names: map[string]string{}}
	s.add("SELECT countIf(name IN ('ProfileName', 'SeriesId', 'StackId')), count() FROM system.columns WHERE database = ",
		s.string(e.cfg.Database), " AND table = ", s.string(e.cfg.Table))
	own, all := int64(0), int64(0)
	err := e.run(ctx, s, func(r *reader) { own, all = r.int64(), r.int64() }, func() error { return nil })
	if err != nil || all == 0 {
		return computed, err // the exporter makes the table when it starts
	}
	found := computed
	if own == 3 {
		found = stored
	}
	e.columns.Store(&found)
	return found, nil
}

// statement begins a statement. If the columns are not known, running it returns why.
func (e *Engine) statement(ctx context.Context) *statement {
	c, err := e.layout(ctx)
	return &statement{
		columns: c, names: map[string]string{}, err: err, from: " FROM `" + e.cfg.Database + "`.`" + e.cfg.Table + "`",
	}
}

func (s *statement) services(service string) string {
	if service == kind.UnknownService {
		return "ServiceName IN " + s.strings([]string{service, ""})
	}
	if len(service) > kind.MaxNameBytes-utf8.UTFMax { // it may have been cut
		return "startsWith(ServiceName, " + s.string(service) + ")"
	}
	return "ServiceName = " + s.string(service)
}

// between is a condition on the times of profiles.
func (s *statement) between(from, until int64) string {
	sql := "Timestamp >= fromUnixTimestamp64Nano(" + s.int(max(from, 0)) + ")"
	if until != 0 {
		sql += " AND Timestamp < fromUnixTimestamp64Nano(" + s.int(until) + ")"
	}
	return sql
}

// days is a condition on the days of profiles, if there are projections by day.
func (s *statement) days(from, until int64) string {
	if !s.hasProjections {
		return s.between(from, until)
	}
	sql := "toDate(Timestamp) >= toDate(fromUnixTimestamp64Nano(" + s.int(max(from, 0)) + "))"
	if until != 0 {
		sql += " AND toDate(Timestamp) <= toDate(fromUnixTimestamp64Nano(" + s.int(until) + "))"
	}
	return sql
}

// ofTypes is a condition on the types of profiles, which are of one service.
func (s *statement) ofTypes(types []answers.EngineType) string {
	list := make([]string, len(types))
	for i := range types {
		t := &types[i]
		list[i] = "(" + s.name + " = " + s.string(t.Stated) + " AND SampleType = " + s.string(t.Type.Type) +
			" AND SampleUnit = " + s.string(t.Type.Unit) +
			" AND PeriodType = " + s.string(t.PeriodType.Type) + " AND PeriodUnit = " + s.string(t.PeriodType.Unit) + ")"
	}
	return s.services(types[0].Service) + " AND (" + strings.Join(list, " OR ") + ")"
}

// The value and the number of observations of a row, whose sums are in the projections `profiles` and `hours` of
// config/backends/clickhouse-table.sql, which have the same text.
const (
	valueOfRow   = "if(empty(Values), toInt64(length(TimestampsUnixNano)), arraySum(Values))"
	samplesOfRow = "greatest(length(TimestampsUnixNano), 1)"
	hourOfRow    = "toStartOfHour(Timestamp, 'UTC')"
	nanos        = int64(time.Second)
)

// profiles selects profiles without their samples, as does the projection `profiles`.
func (s *statement) profiles(where string) string {
	return "SELECT ServiceName, " + s.name + " AS Name, SampleType, SampleUnit, PeriodType, PeriodUnit, " + s.series +
		" AS Series, Timestamp," +
		" max(DurationNano) AS Duration, max(Period) AS MaxPeriod," +
		" sum(" + valueOfRow + ") AS Total, sum(" + samplesOfRow + ") AS Samples," +
		" min(arrayMin(TimestampsUnixNano)) AS First, max(arrayMax(TimestampsUnixNano)) AS Last," +
		" max(notEmpty(SampleAttributes)) AS HasAttributes, max(notEmpty(TraceId)) AS HasLinks" +
		s.from + " WHERE " + where +
		" GROUP BY ServiceName, Name, SampleType, SampleUnit, PeriodType, PeriodUnit, Series, Timestamp"
}

// Types lists what profiles there are.
func (e *Engine) Types(ctx context.Context, service string, from, until int64,
	use func(*answers.EngineType) error) error {
	s := e.statement(ctx)
	where, ofDays := s.between(from, until), s.days(from, until)
	if service != "" {
		where, ofDays = where+" AND "+s.services(service), ofDays+" AND "+s.services(service)
	}
	s.add("SELECT if(ServiceName = '', ", s.string(kind.UnknownService),
		", toString(ServiceName)) AS Service, Name, SampleType, SampleUnit, PeriodType, PeriodUnit,",
		" min(toUnixTimestamp64Nano(Timestamp)), max(toUnixTimestamp64Nano(Timestamp) + toInt64(Duration)), toInt64(max(Duration)),",
		" toInt64(sum(Samples)), toInt64(uniqExact(Series)), max(Last) != 0, Temporality",
		" FROM (", s.profiles(where), ") AS profiles LEFT JOIN (SELECT ", s.series,
		" AS OfSeries, toString(any(ProfileAttributes)['",
		kind.TemporalityAttribute, "']) AS Temporality", s.from, " WHERE ", ofDays,
		" GROUP BY OfSeries HAVING Temporality != '') AS stated",
		" ON Series = OfSeries GROUP BY Service, Name, SampleType, SampleUnit, PeriodType, PeriodUnit, Temporality")
	t := &answers.EngineType{}
	return e.run(ctx, s, func(r *reader) {
		*t = answers.EngineType{
			Service: r.string(), Stated: r.string(), Type: model.SampleType{Type: r.string(), Unit: r.string()},
			PeriodType: model.SampleType{Type: r.string(), Unit: r.string()},
			From:       r.int64(), Until: r.int64(), Duration: r.int64(), Samples: int(r.int64()), Instances: int(r.int64()),
			IsTimed:     r.bool(),
			Temporality: r.string(),
		}
	}, func() error { return use(t) })
}

// Series lists the series of a service.
func (e *Engine) Series(ctx context.Context, service string, from, until int64,
	use func(id answers.EngineID, resource, profile []model.Attribute) error,
) error {
	s := e.statement(ctx)
	s.add("SELECT ", s.series, " AS Series, any(ResourceAttributes), any(ProfileAttributes)", s.from,
		" WHERE ", s.services(service), " AND ", s.days(from, until), " GROUP BY Series")
	var id answers.EngineID
	var resource, profile []model.Attribute
	return e.run(ctx, s, func(r *reader) {
		id, resource, profile = r.id(), r.attributes(resource), r.attributes(profile)
	}, func() error { return use(id, resource, profile) })
}

// Profiles lists profiles without their samples.
func (e *Engine) Profiles(ctx context.Context, types []answers.EngineType, from, until int64,
	use func(*answers.EngineProfile) error) error {
	type key struct {
		stated          string
		typ, periodType model.SampleType
	}
	at := map[key]int{}
	for i := range types {
		at[key{types[i].Stated, types[i].Type, types[i].PeriodType}] = i
	}
	s := e.statement(ctx)
	s.add("SELECT Name, SampleType, SampleUnit, PeriodType, PeriodUnit, Series, toUnixTimestamp64Nano(Timestamp), toInt64(Duration), MaxPeriod, Total,",
		" toInt64(Samples), toInt64(First), toInt64(Last), HasAttributes, HasLinks FROM (",
		s.profiles(s.between(from, until)+" AND "+s.ofTypes(types)),
		") ORDER BY Timestamp, Series")
	p := &answers.EngineProfile{}
	return e.run(ctx, s, func(r *reader) {
		k := key{r.string(), model.SampleType{Type: r.string(), Unit: r.string()},
			model.SampleType{Type: r.string(), Unit: r.string()}}
		*p = answers.EngineProfile{
			Type: at[k], Series: r.id(), Time: r.int64(), Duration: min(r.int64(), math.MaxInt64/4), Period: r.int64(),
			Total:   r.int64(),
			Samples: int(r.int64()), First: r.int64(), Last: r.int64(), HasAttributes: r.bool(), HasLinks: r.bool(),
		}
		p.IsTimed = p.Last != 0
	}, func() error { return use(p) })
}

// HasAttribute reports whether samples of the types, which are of one service, have an attribute of a key, with one of
// some values; nil means any. Without values it reads the keys alone.
func (e *Engine) HasAttribute(ctx context.Context, types []answers.EngineType, from, until int64, key string,
	values []string,
) (has bool, err error) {
	s := e.statement(ctx)
	k := s.string(key)
	where := s.between(from, until) + " AND " + s.ofTypes(types) + " AND has(SampleAttributes.keys, " + k + ")"
	if values != nil {
		where += " AND SampleAttributes[" + k + "] IN " + s.strings(values)
	}
	s.add("SELECT toInt64(count()) FROM (SELECT 1", s.from, " WHERE ", where, " LIMIT 1)")
	err = e.run(ctx, s, func(r *reader) { has = r.int64() > 0 }, func() error { return nil })
	return has, err
}

// Rows adds up samples.
func (e *Engine) Rows(ctx context.Context, q *answers.EngineQuery, use func(*answers.EngineRow) error) error {
	s, row := e.statement(ctx), &answers.EngineRow{}
	s.sums(q)
	return e.run(ctx, s, func(r *reader) {
		row.Sum, row.Value, row.Fraction = r.int32(), r.int64(), r.float64()
		if q.Stacks {
			row.Stack = r.id()
		}
		if q.Attributes || q.Keys != nil {
			row.Attributes = r.attributes(row.Attributes)
		}
		if q.Links {
			row.Trace, row.Span = r.string(), r.string()
		}
		if q.Timestamps {
			row.Time = r.int64()
		}
	}, func() error { return use(row) })
}

// sums adds the SQL of a query: rows of samples and of sums by hour, each with the span that its time lies in.
func (s *statement) sums(q *answers.EngineQuery) {
	of := s.ofTypes(q.Types)
	where := of + " AND " + s.between(q.From, q.Until+1)
	value, arrayJoin := valueOfRow, ""
	if q.Counts {
		value = "toInt64(" + samplesOfRow + ")"
	}
	sumOfRows := "sum(" + value + ") AS Value"
	columns, names := s.wanted(q)
	if q.Timestamps {
		arrayJoin = " ARRAY JOIN if(empty(TimestampsUnixNano), [toUnixTimestamp64Nano(Timestamp)]," +
			" CAST(TimestampsUnixNano, 'Array(Int64)')) AS Time, if(empty(TimestampsUnixNano), [arraySum(Values)]," +
			" arrayResize(if(empty(Values), arrayMap(x -> toInt64(1), TimestampsUnixNano), Values)," +
			" length(TimestampsUnixNano))) AS ValueAtTime"
		if value = "ValueAtTime"; q.Counts {
			value = "toInt64(1)"
		}
		where += " AND Time >= " + s.int(q.SumsWanted.From)
		if q.SumsWanted.Until != 0 {
			where += " AND Time < " + s.int(q.SumsWanted.Until)
		}
	}
	hours := ""
	if q.WholeFrom < q.WholeUntil {
		where += " AND (Timestamp < fromUnixTimestamp64Nano(" + s.int(q.WholeFrom) +
			") OR Timestamp >= fromUnixTimestamp64Nano(" + s.int(q.WholeUntil) + "))"
		hours = " UNION ALL SELECT toInt64(toUnixTimestamp(Hour)) * " + s.int(nanos) + ", " +
			strings.Join(append([]string{"Series"}, names...), ", ") + ", Value FROM (SELECT " + hourOfRow + " AS Hour, " +
			strings.Join(columns, ", ") + ", " + sumOfRows + s.from + " WHERE " + of + " AND Hour >= toDateTime(" +
			s.int(q.WholeFrom/nanos) + ", 'UTC') AND Hour < toDateTime(" + s.int(q.WholeUntil/nanos) + ", 'UTC') GROUP BY ALL)"
	}
	s.spans(q.Spans)
	sum := "sum("
	if q.Timestamps { // each observation is a row
		sum = "("
	}
	s.add("SELECT ", strings.Join(append([]string{
		"span_sum", sum + "Value * span_whole) AS Whole", sum + "Value * span_part) AS Part",
	}, names...), ", "),
		" FROM (SELECT toUnixTimestamp64Nano(Timestamp) AS At, ", strings.Join(columns, ", "), ", ", value, " AS Value",
		s.from, arrayJoin, " WHERE ", where, hours,
		") AS samples ASOF INNER JOIN spans ON Series = span_series AND At >= span_from WHERE At <= span_until")
	if !q.Timestamps {
		s.add(" GROUP BY ALL")
		if !q.Counts && !q.Attributes && !q.Links { // a pprof has those samples of 0
			s.add(" HAVING Whole != 0 OR Part != 0")
		}
	}
}

// wanted returns the columns of samples of a query, with their series as the first, and the names of the others.
func (s *statement) wanted(q *answers.EngineQuery) (columns, names []string) {
	columns = []string{s.series + " AS Series"}
	add := func(is bool, sql, name string) {
		if is {
			columns, names = append(columns, sql+" AS "+name), append(names, name)
		}
	}
	add(q.Stacks, s.stack, "Stack")
	add(q.Attributes, "SampleAttributes", "Attributes")
	if !q.Attributes && q.Keys != nil {
		are := make([]string, len(q.Keys))
		for i, k := range q.Keys {
			if are[i] = "k = " + s.string(k.Key); k.Values != nil {
				are[i] += " AND v IN " + s.strings(k.Values)
			}
		}
		add(true, "mapFilter((k, v) -> "+strings.Join(are, " OR ")+", SampleAttributes)", "Attributes")
	}
	add(q.Links, "TraceId", "Trace")
	add(q.Links, "SpanId", "Span")
	if q.Timestamps {
		names = append(names, "Time")
		columns = append(columns, "Time")
	}
	return columns, names
}

// spans is the table of spans.
func (s *statement) spans(list []answers.EngineSpan) {
	s.tableName = "spans"
	s.structure =
		"span_series FixedString(16), span_from Int64, span_until Int64, span_sum Int32, span_whole Int64, span_part Float64"
	order := binary.LittleEndian
	for i := range list {
		span := &list[i]
		s.rows = append(s.rows, span.Series[:]...)
		s.rows = order.AppendUint64(s.rows, uint64(span.From))
		s.rows = order.AppendUint64(s.rows, uint64(span.Until))
		s.rows = order.AppendUint32(s.rows, uint32(span.Sum))
		s.rows = order.AppendUint64(s.rows, uint64(span.Whole))
		s.rows = order.AppendUint64(s.rows, math.Float64bits(span.Part))
	}
}

// Stacks resolves stacks.
func (e *Engine) Stacks(ctx context.Context, service string, from, until int64, ids []answers.EngineID,
	use func(*answers.EngineStack) error) error {
	s := e.statement(ctx)
	s.tableName, s.structure = "wanted", "id FixedString(16)"
	for i := range ids {
		s.rows = append(s.rows, ids[i][:]...)
	}
	s.add("SELECT ", s.stack, " AS Stack")
	for _, column := range []string{"FunctionNames", "FileNames", "LineNumbers", "Addresses", "MappingFileNames"} {
		s.add(", groupArray(1)(", column, ")[1]") // any takes eight times as long for lists
	}
	s.add(s.from,
		" WHERE ", s.services(service), " AND ", s.days(from, until),
		" AND Stack IN (SELECT id FROM wanted) GROUP BY Stack")
	var functions, files, mappings []string
	var lines []int32
	var addresses []int64
	stack := &answers.EngineStack{}
	return e.run(ctx, s, func(r *reader) {
		stack.ID = r.id()
		functions, files = list(r, functions, r.string), list(r, files, r.string)
		lines, addresses, mappings = list(r, lines, r.int32), list(r, addresses, r.int64), list(r, mappings, r.string)
		stack.Frames = stack.Frames[:0]
		for i := range min(len(functions), len(files), len(lines), len(addresses), len(mappings)) {
			stack.Frames = append(stack.Frames, answers.EngineFrame{
				Function: functions[i], File: files[i], Mapping: mappings[i], Line: int64(lines[i]), Address: uint64(addresses[i]),
			})
		}
	}, func() error { return use(stack) })
}
