// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package clickhouse

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
)

// columns are the SQL of what identifies rows. Hashes have all that makes a difference: the table's own StackHash has
// not.
type columns struct {
	name, series, stack string
	// hasProjections reports that there are sums by hour, and series and stacks by day.
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
	s := newStatement()
	s.add("SELECT countIf(name IN ('ProfileName', 'SeriesId', 'StackId')), count() FROM system.columns WHERE database = ",
		s.string(e.cfg.Database), " AND table = ", s.string(e.cfg.Table))
	own, all := int64(0), int64(0)
	err := e.run(ctx, s, func(r *reader) error {
		own, all = r.int64(), r.int64()
		return nil
	})
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

// from is the table.
func (e *Engine) from() string { return " FROM `" + e.cfg.Database + "`.`" + e.cfg.Table + "`" }

func services(s *statement, service string) string {
	if service == kind.UnknownService {
		return "ServiceName IN " + s.strings([]string{service, ""})
	}
	return "ServiceName = " + s.string(service)
}

// between is a condition on the times of profiles.
func between(s *statement, from, until int64) string {
	sql := "Timestamp >= fromUnixTimestamp64Nano(" + s.int(max(from, 0)) + ")"
	if until != 0 {
		sql += " AND Timestamp < fromUnixTimestamp64Nano(" + s.int(until) + ")"
	}
	return sql
}

// days is a condition on the days of profiles, if there are projections by day.
func (c *columns) days(s *statement, from, until int64) string {
	if !c.hasProjections {
		return between(s, from, until)
	}
	sql := "toDate(Timestamp) >= toDate(fromUnixTimestamp64Nano(" + s.int(max(from, 0)) + "))"
	if until != 0 {
		sql += " AND toDate(Timestamp) <= toDate(fromUnixTimestamp64Nano(" + s.int(until) + "))"
	}
	return sql
}

func (c *columns) ofTypes(s *statement, types []store.EngineType) string {
	list := make([]string, len(types))
	for i := range types {
		t := &types[i]
		list[i] = "(" + c.name + " = " + s.string(t.Stated) + " AND SampleType = " + s.string(t.Type.Type) +
			" AND SampleUnit = " + s.string(t.Type.Unit) +
			" AND PeriodType = " + s.string(t.PeriodType.Type) + " AND PeriodUnit = " + s.string(t.PeriodType.Unit) + ")"
	}
	return "(" + strings.Join(list, " OR ") + ")"
}

// The sums of rows in the projections `profiles` and `hours` of config/backends/clickhouse-table.sql, which have the
// same text.
const (
	sumOfValues  = "sum(if(empty(Values), toInt64(length(TimestampsUnixNano)), arraySum(Values)))"
	sumOfSamples = "sum(greatest(length(TimestampsUnixNano), 1))"
	hourOfRow    = "toStartOfHour(Timestamp, 'UTC')"
	nanos        = int64(time.Second)
)

// profiles selects profiles without their samples, as does the projection `profiles`.
func (e *Engine) profiles(c *columns, where string) string {
	return "SELECT ServiceName, " + c.name + " AS Name, SampleType, SampleUnit, PeriodType, PeriodUnit, " + c.series +
		" AS Series, Timestamp," +
		" max(DurationNano) AS Duration, max(Period) AS MaxPeriod," +
		" " + sumOfValues + " AS Total, " + sumOfSamples + " AS Samples," +
		" min(arrayMin(TimestampsUnixNano)) AS First, max(arrayMax(TimestampsUnixNano)) AS Last," +
		" max(notEmpty(SampleAttributes)) AS HasAttributes, max(notEmpty(TraceId)) AS HasLinks" +
		e.from() + " WHERE " + where +
		" GROUP BY ServiceName, Name, SampleType, SampleUnit, PeriodType, PeriodUnit, Series, Timestamp"
}

// Types lists what profiles there are.
func (e *Engine) Types(ctx context.Context, service string, from, until int64,
	use func(*store.EngineType) error) error {
	c, err := e.layout(ctx)
	if err != nil {
		return err
	}
	s := newStatement()
	where, ofDays := between(s, from, until), c.days(s, from, until)
	if service != "" {
		where, ofDays = where+" AND "+services(s, service), ofDays+" AND "+services(s, service)
	}
	s.add("SELECT if(ServiceName = '', ", s.string(kind.UnknownService),
		", toString(ServiceName)) AS Service, Name, SampleType, SampleUnit, PeriodType, PeriodUnit,",
		" min(toUnixTimestamp64Nano(Timestamp)), max(toUnixTimestamp64Nano(Timestamp) + toInt64(Duration)), toInt64(max(Duration)),",
		" toInt64(sum(Samples)), toInt64(uniqExact(Series)), max(Last) != 0, Temporality",
		" FROM (", e.profiles(&c, where), ") AS profiles LEFT JOIN (SELECT ", c.series,
		" AS OfSeries, toString(any(ProfileAttributes)['",
		kind.TemporalityAttribute, "']) AS Temporality", e.from(), " WHERE ", ofDays,
		" GROUP BY OfSeries HAVING Temporality != '') AS stated",
		" ON Series = OfSeries GROUP BY Service, Name, SampleType, SampleUnit, PeriodType, PeriodUnit, Temporality")
	return e.run(ctx, s, func(r *reader) error {
		t := store.EngineType{
			Service: r.string(), Stated: r.string(), Type: model.SampleType{Type: r.string(), Unit: r.string()},
			PeriodType: model.SampleType{Type: r.string(), Unit: r.string()},
			From:       r.int64(), Until: r.int64(), Duration: r.int64(), Samples: int(r.int64()), Instances: int(r.int64()),
			IsTimed:     r.bool(),
			Temporality: r.string(),
		}
		if r.err != nil {
			return nil
		}
		return use(&t)
	})
}

// Series lists the series of a service.
func (e *Engine) Series(ctx context.Context, service string, from, until int64,
	use func(id store.EngineID, resource, profile []model.Attribute) error,
) error {
	c, err := e.layout(ctx)
	if err != nil {
		return err
	}
	s := newStatement()
	s.add("SELECT ", c.series, " AS Series, any(ResourceAttributes), any(ProfileAttributes)", e.from(),
		" WHERE ", services(s, service), " AND ", c.days(s, from, until), " GROUP BY Series")
	var resource, profile []model.Attribute
	return e.run(ctx, s, func(r *reader) error {
		id := r.id()
		resource, profile = r.attributes(resource), r.attributes(profile)
		if r.err != nil {
			return nil
		}
		return use(id, resource, profile)
	})
}

// Profiles lists profiles without their samples.
func (e *Engine) Profiles(ctx context.Context, types []store.EngineType, from, until int64,
	use func(*store.EngineProfile) error) error {
	c, err := e.layout(ctx)
	if err != nil {
		return err
	}
	type key struct {
		stated          string
		typ, periodType model.SampleType
	}
	at := map[key]int{}
	for i := range types {
		at[key{types[i].Stated, types[i].Type, types[i].PeriodType}] = i
	}
	s := newStatement()
	s.add("SELECT Name, SampleType, SampleUnit, PeriodType, PeriodUnit, Series, toUnixTimestamp64Nano(Timestamp), toInt64(Duration), MaxPeriod, Total,",
		" toInt64(Samples), toInt64(First), toInt64(Last), HasAttributes, HasLinks FROM (",
		e.profiles(&c, services(s, types[0].Service)+" AND "+between(s, from, until)+" AND "+c.ofTypes(s, types)),
		") ORDER BY Timestamp, Series")
	return e.run(ctx, s, func(r *reader) error {
		k := key{r.string(), model.SampleType{Type: r.string(), Unit: r.string()},
			model.SampleType{Type: r.string(), Unit: r.string()}}
		p := store.EngineProfile{
			Type: at[k], Series: r.id(), Time: r.int64(), Duration: min(r.int64(), math.MaxInt64/4), Period: r.int64(),
			Total:   r.int64(),
			Samples: int(r.int64()), First: r.int64(), Last: r.int64(), HasAttributes: r.bool(), HasLinks: r.bool(),
		}
		p.IsTimed = p.Last != 0
		if r.err != nil {
			return nil
		}
		return use(&p)
	})
}

// HasAttribute reports whether samples of the types, which are of one service, have an attribute of a key, with one of
// some values; nil means any. Without values it reads the keys alone.
func (e *Engine) HasAttribute(ctx context.Context, types []store.EngineType, from, until int64, key string,
	values []string,
) (has bool, err error) {
	c, err := e.layout(ctx)
	if err != nil {
		return false, err
	}
	s := newStatement()
	k := s.string(key)
	where := services(s, types[0].Service) + " AND " + between(s, from, until) + " AND " + c.ofTypes(s, types) +
		" AND has(SampleAttributes.keys, " + k + ")"
	if values != nil {
		where += " AND SampleAttributes[" + k + "] IN " + s.strings(values)
	}
	s.add("SELECT toInt64(count()) FROM (SELECT 1", e.from(), " WHERE ", where, " LIMIT 1)")
	err = e.run(ctx, s, func(r *reader) error {
		has = r.int64() > 0
		return nil
	})
	return has, err
}

// Rows adds up samples.
func (e *Engine) Rows(ctx context.Context, q *store.EngineQuery, use func(*store.EngineRow) error) error {
	c, err := e.layout(ctx)
	if err != nil {
		return err
	}
	s := e.rows(&c, q)
	hasChosen, want := len(q.Chosen) > 0, q.Want
	row := &store.EngineRow{}
	return e.run(ctx, s, func(r *reader) error {
		if hasChosen {
			row.Group, row.GroupName, row.Into = r.int32(), r.string(), r.int64()
		}
		if want.Series || want.Profiles {
			row.Series = r.id()
		}
		if want.Stacks {
			row.Stack = r.id()
		}
		if want.Attributes {
			row.Attributes = r.attributes(row.Attributes)
		}
		if want.Links {
			row.Trace, row.Span = r.string(), r.string()
		}
		if want.Times {
			row.Time = r.int64()
		}
		row.Samples = r.int64()
		if q.IsFractional {
			row.Fraction = r.float64()
		} else {
			row.Value = r.int64()
		}
		if r.err != nil {
			return nil
		}
		return use(row)
	})
}

// rows returns the statement of a query.
func (e *Engine) rows(c *columns, q *store.EngineQuery) *statement {
	s := newStatement()
	want := q.Want
	cutUntil := q.CutUntil
	if cutUntil == 0 {
		cutUntil = math.MaxInt64
	}
	isCut := q.CutFrom != 0 || q.CutUntil != 0
	isIn := func(t string) string {
		return "(" + t + " >= " + s.int(q.CutFrom) + " AND " + t + " < " + s.int(cutUntil) + ")"
	}
	// inner are the columns of samples, by their names in what follows.
	var inner, keys []string
	add := func(is bool, sql, name string) {
		if is {
			inner, keys = append(inner, sql+" AS "+name), append(keys, name)
		}
	}
	add(want.Series || want.Profiles || len(q.Chosen) > 0, c.series, "Series")
	if len(q.Chosen) > 0 && !want.Series && !want.Profiles {
		keys = nil
	}
	add(want.Stacks, c.stack, "Stack")
	ofHours := slices.Clone(inner)
	ofSamples := slices.ContainsFunc(q.Chosen, func(c store.EngineChosen) bool { return c.Group < 0 || c.Required != 0 })
	hasHours := c.hasProjections && q.WholeFrom < q.WholeUntil && !ofSamples && !want.Attributes && !want.Links &&
		!want.Times
	add(want.Attributes, "SampleAttributes", "Attributes")
	add(want.Links, "TraceId", "Trace")
	add(want.Links, "SpanId", "Span")
	ones := "arrayResize(if(empty(Values), arrayMap(x -> toInt64(1), TimestampsUnixNano), Values), length(TimestampsUnixNano))"
	value, count, arrayJoin, where := "arraySum(Values)", "1", "", "1"
	switch {
	case want.Times:
		arrayJoin = " ARRAY JOIN if(empty(TimestampsUnixNano), [toInt64(0)], CAST(TimestampsUnixNano, 'Array(Int64)')) AS At," +
			" if(empty(TimestampsUnixNano), [arraySum(Values)], " + ones + ") AS ValueAt"
		add(true, "At", "Time")
		value = "ValueAt"
		if isCut {
			where += " AND (At = 0 OR " + isIn("At") + ")"
		}
	case q.IsTimed && isCut:
		value = "if(empty(TimestampsUnixNano), arraySum(Values), arraySum((v, t) -> if(" + isIn("t") + ", v, toInt64(0)), " +
			ones + ", TimestampsUnixNano))"
		count = "if(empty(TimestampsUnixNano), 1, arrayCount(t -> " + isIn("t") + ", TimestampsUnixNano))"
	case q.IsTimed:
		value = "if(empty(TimestampsUnixNano), arraySum(Values), arraySum(" + ones + "))"
		count = "greatest(length(TimestampsUnixNano), 1)"
	}
	if q.TimesOnly {
		where += " AND notEmpty(TimestampsUnixNano)"
	}
	inner = append(inner, value+" AS Value", "toInt64("+count+") AS Samples")
	coefficient := ""
	switch {
	case q.IsListed:
		coefficient = "coefficient"
		inner = append(inner, "toUnixTimestamp64Nano(Timestamp) AS ProfileTime")
	case isCut:
		coefficient = "Coefficient"
		start, duration := "toUnixTimestamp64Nano(Timestamp)", "toInt64(DurationNano)"
		part := "if(DurationNano = 0, toFloat64" + isIn(start) + ", greatest(0, least(" + start + " + " + duration + ", " +
			s.int(cutUntil) + ") - greatest(" +
			start + ", " + s.int(q.CutFrom) + ")) / DurationNano)"
		if q.IsTimed {
			part = "if(empty(TimestampsUnixNano), " + part + ", 1.)"
		}
		inner = append(inner, part+" AS Coefficient")
	}
	if ofSamples {
		inner = append(inner, "SampleAttributes AS Found")
	}
	of := services(s, q.Service) + " AND SampleType = " + s.string(q.Type.Type) + " AND SampleUnit = " +
		s.string(q.Type.Unit)
	if q.Types != nil {
		of += " AND " + c.ofTypes(s, q.Types)
	}
	where += " AND " + of + " AND " + between(s, q.From, q.Until+1)
	hours := ""
	if hasHours {
		where += " AND (Timestamp < fromUnixTimestamp64Nano(" + s.int(q.WholeFrom) +
			") OR Timestamp >= fromUnixTimestamp64Nano(" + s.int(q.WholeUntil) + "))"
		hours = " UNION ALL " + e.hours(s, q, ofHours, coefficient, of)
	}
	from := "(SELECT " + strings.Join(inner, ", ") + e.from() + arrayJoin + " WHERE " + where + hours + ") AS samples"
	outer := "1"
	if len(q.Chosen) > 0 {
		s.choose(q.Chosen)
		from += " INNER JOIN chosen ON Series = chosen_series"
		if q.IsListed {
			from += " AND ProfileTime = chosen_time"
		}
		group, groupName := "chosen_group", "''"
		if ofSamples && q.GroupBy != "" {
			key := s.string(q.GroupBy)
			isOwn := "chosen_group < 0 AND mapContains(Found, " + key + ")"
			group = "if(" + isOwn + ", toInt32(" + strconv.Itoa(store.OwnGroup) + "), chosen_group)"
			groupName = "if(" + isOwn + ", Found[" + key + "], '')"
		}
		for i, f := range q.Filters {
			if !ofSamples {
				break
			}
			key := s.string(f.Key)
			outer += " AND (NOT bitTest(chosen_required, " + s.int(int64(i)) + ") OR mapContains(Found, " + key +
				") AND Found[" + key + "] IN " + s.strings(f.Values) + ")"
		}
		keys = append([]string{group + " AS GroupNumber", groupName + " AS GroupName", "chosen_into"}, keys...)
	}
	sum := "sum(Value)"
	switch {
	case q.IsFractional && coefficient != "":
		sum = "sum(Value * " + coefficient + ")"
	case q.IsFractional:
		sum = "sum(toFloat64(Value))"
	case coefficient != "":
		sum = "sum(Value * toInt64(" + coefficient + "))"
	}
	if want.Times { // each observation is one
		s.add("SELECT ", strings.Join(append(keys, "Samples AS Count", strings.TrimPrefix(sum, "sum")+" AS Sum"), ", "),
			" FROM ", from, " WHERE ", outer)
		return s
	}
	s.add("SELECT ", strings.Join(append(keys, "toInt64(sum(Samples)) AS Count", sum+" AS Sum"), ", "), " FROM ", from,
		" WHERE ", outer)
	if len(keys) > 0 {
		s.add(" GROUP BY ALL")
	}
	s.add(" HAVING Count > 0")
	if want == (store.Want{Stacks: true}) {
		s.add(" AND Sum != 0")
	}
	return s
}

// hours selects the sums of whole hours by keys, in the columns of rows. Their coefficient, if there is one, is 1.
func (e *Engine) hours(s *statement, q *store.EngineQuery, keys []string, coefficient, of string) string {
	columns := append(keys, sumOfValues+" AS Value", "toInt64("+sumOfSamples+") AS Samples")
	if coefficient != "" {
		columns = append(columns, "1. AS "+coefficient)
	}
	sql := "SELECT " + strings.Join(columns, ", ") + e.from() + " WHERE " + of + " AND " + hourOfRow + " >= toDateTime(" +
		s.int(q.WholeFrom/nanos) +
		", 'UTC') AND " + hourOfRow + " < toDateTime(" + s.int(q.WholeUntil/nanos) + ", 'UTC')"
	if len(keys) > 0 {
		sql += " GROUP BY ALL"
	}
	return sql
}

func (s *statement) choose(list []store.EngineChosen) {
	s.tableName = "chosen"
	s.structure =
		"chosen_series FixedString(16), chosen_time Int64, chosen_into Int64, coefficient Float64, chosen_group Int32, chosen_required UInt64"
	order := binary.LittleEndian
	for i := range list {
		c := &list[i]
		s.rows = append(s.rows, c.Series[:]...)
		s.rows = order.AppendUint64(s.rows, uint64(c.Time))
		s.rows = order.AppendUint64(s.rows, uint64(c.Into))
		s.rows = order.AppendUint64(s.rows, math.Float64bits(c.Coefficient))
		s.rows = order.AppendUint32(s.rows, uint32(c.Group))
		s.rows = order.AppendUint64(s.rows, c.Required)
	}
}

// Stacks resolves stacks.
func (e *Engine) Stacks(ctx context.Context, service string, from, until int64, ids []store.EngineID,
	use func(*store.EngineStack) error) error {
	c, err := e.layout(ctx)
	if err != nil {
		return err
	}
	s := newStatement()
	s.tableName, s.structure = "wanted", "id FixedString(16)"
	for i := range ids {
		s.rows = append(s.rows, ids[i][:]...)
	}
	s.add("SELECT ", c.stack, " AS Stack")
	for _, column := range []string{"FunctionNames", "FileNames", "LineNumbers", "Addresses", "MappingFileNames"} {
		s.add(", groupArray(1)(", column, ")[1]") // any takes eight times as long for lists
	}
	s.add(e.from(),
		" WHERE ", services(s, service), " AND ", c.days(s, from, until),
		" AND Stack IN (SELECT id FROM wanted) GROUP BY Stack")
	var functions, files, mappings []string
	var lines []int32
	var addresses []int64
	stack := &store.EngineStack{}
	return e.run(ctx, s, func(r *reader) error {
		stack.ID = r.id()
		functions, files = list(r, functions, r.string), list(r, files, r.string)
		lines, addresses, mappings = list(r, lines, r.int32), list(r, addresses, r.int64), list(r, mappings, r.string)
		stack.Frames = stack.Frames[:0]
		for i := range min(len(functions), len(files), len(lines), len(addresses), len(mappings)) {
			stack.Frames = append(stack.Frames, store.EngineFrame{
				Function: functions[i], File: files[i], Mapping: mappings[i], Line: int64(lines[i]), Address: uint64(addresses[i]),
			})
		}
		if r.err != nil {
			return nil
		}
		return use(stack)
	})
}
