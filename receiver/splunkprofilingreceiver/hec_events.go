// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/xpdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiledict"
)

// maxEvents bounds the events of one request: each becomes a record, which is many times the size of an empty event.
const maxEvents = 1 << 17

// event is one event of a body.
type event struct {
	Time       json.RawMessage
	Host       string
	Source     string
	SourceType string `json:"sourcetype"`
	Index      string
	Event      json.RawMessage
	Fields     map[string]any
}

// eventFault says why a body is refused.
type eventFault struct {
	status int
	hecAnswer
}

func badEvent(number int, code hecCode, reason string) *eventFault {
	return &eventFault{http.StatusBadRequest, hecAnswer{Code: code, InvalidEvent: &number, Reason: reason}}
}

// eventReader makes log records of the events of a body: objects, one after the other. Nothing is taken of a body
// that has an event which is none.
type eventReader struct {
	library  string
	observed pcommon.Timestamp

	logs plog.Logs
	// lastResource and lastScope are where the last event went: those of one sender follow each other.
	lastResource plog.ResourceLogs
	lastScope    plog.ScopeLogs
	lastContent  []byte
	records      int
}

func (e *eventReader) read(body []byte) (plog.Logs, *eventFault) {
	e.logs = plog.NewLogs()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	for {
		var next event
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return plog.Logs{}, badEvent(e.records, hecInvalidData, err.Error())
		}
		if e.records == maxEvents {
			return plog.Logs{}, &eventFault{http.StatusRequestEntityTooLarge, hecAnswer{
				Code: hecTooLarge, Reason: "more than " + strconv.Itoa(maxEvents) + " events",
			}}
		}
		if fault := e.take(&next); fault != nil {
			return plog.Logs{}, fault
		}
		e.records++
	}
	if e.records == 0 {
		return plog.Logs{}, &eventFault{http.StatusBadRequest, hecAnswer{Code: hecNoData}}
	}
	return e.logs, nil
}

// take appends one event's record.
func (e *eventReader) take(next *event) *eventFault {
	at, ok := eventTime(next.Time)
	if !ok {
		return badEvent(e.records, hecInvalidData, "`time` is not a number of seconds")
	}
	switch {
	case len(next.Event) == 0:
		return badEvent(e.records, hecEventRequired, "")
	case string(next.Event) == "null" || string(next.Event) == `""`:
		return badEvent(e.records, hecEventBlank, "")
	}
	profiling := next.SourceType == profilingName || e.library == profilingName || next.Fields[attrSourceType] == profilingName
	host := next.Host
	if profiling && host == unknownHost {
		host = ""
	}
	var resource, attributes xpdata.MapBuilder // Map.Put would look through all fields before each
	for _, own := range [...]struct{ key, value string }{
		{"com.splunk.index", next.Index}, {"com.splunk.source", next.Source}, {attrSourceType, next.SourceType}, {"host.name", host},
	} {
		if _, isField := next.Fields[own.key]; isField || own.value == "" {
			continue // a field of the same name counts
		}
		to := &resource
		if profiling && own.key == attrSourceType {
			to = &attributes
		}
		to.AppendEmpty(own.key).SetStr(own.value)
	}
	for _, key := range slices.Sorted(maps.Keys(next.Fields)) {
		value := next.Fields[key]
		if _, nested := value.(map[string]any); nested {
			return badEvent(e.records, hecFields, "field "+strconv.Quote(key)+" is an object")
		}
		to := &attributes
		if profiling && strings.HasPrefix(key, severityPrefix) {
			continue // a profile has none
		}
		if profiling && !isRecordField(key) {
			to = &resource
		}
		setValue(to.AppendEmpty(key), value)
	}
	record := e.scope(&resource, profiling).LogRecords().AppendEmpty()
	attributes.UnsafeIntoMap(record.Attributes())
	record.SetTimestamp(at)
	record.SetObservedTimestamp(e.observed)
	var content any
	decoder := json.NewDecoder(bytes.NewReader(next.Event))
	decoder.UseNumber()
	if err := decoder.Decode(&content); err != nil {
		return badEvent(e.records, hecInvalidData, err.Error())
	}
	setValue(record.Body(), content)
	return nil
}

const (
	profilingName  = "otel.profiling"
	attrSourceType = "com.splunk.sourcetype"
	// What Splunk's collector writes where a record's resource has no host, and for the severity of a record.
	unknownHost    = "unknown"
	severityPrefix = "otel.log.severity."
)

// isRecordField tells the fields of a profiling event that are attributes of its record from those of its resource,
// which HEC does not: a sender writes both as fields.
func isRecordField(key string) bool {
	for _, prefix := range []string{"profiling.", "source.event.", "thread.", "memory.allocated", "otel.log.", "sampler."} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return key == attrSourceType || key == "trace_id" || key == "span_id"
}

// scope gives the scope for a record of this resource. Events stay in their order.
func (e *eventReader) scope(built *xpdata.MapBuilder, profiling bool) plog.ScopeLogs {
	resource := pcommon.NewMap()
	built.UnsafeIntoMap(resource)
	content := profiledict.AppendMap(nil, resource) // Map.Equal looks through all of a map for each entry
	name := e.library
	if profiling {
		name = profilingName
	}
	if e.records > 0 && bytes.Equal(e.lastContent, content) && e.lastScope.Scope().Name() == name {
		return e.lastScope
	}
	e.lastResource, e.lastContent = e.logs.ResourceLogs().AppendEmpty(), content
	resource.MoveTo(e.lastResource.Resource().Attributes())
	e.lastScope = e.lastResource.ScopeLogs().AppendEmpty()
	e.lastScope.Scope().SetName(name)
	return e.lastScope
}

// setValue sets a value that the JSON decoder made. Maps are sorted, so that the same event gives the same record.
func setValue(to pcommon.Value, from any) {
	switch v := from.(type) {
	case string:
		to.SetStr(v)
	case bool:
		to.SetBool(v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			to.SetInt(n)
		} else if f, err := v.Float64(); err == nil {
			to.SetDouble(f)
		} else {
			to.SetStr(v.String())
		}
	case []any:
		list := to.SetEmptySlice()
		list.EnsureCapacity(len(v))
		for _, element := range v {
			setValue(list.AppendEmpty(), element)
		}
	case map[string]any:
		var m xpdata.MapBuilder
		m.EnsureCapacity(len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			setValue(m.AppendEmpty(key), v[key])
		}
		m.UnsafeIntoMap(to.SetEmptyMap())
	}
}

// maxSeconds is what an int64 of nanoseconds holds.
const maxSeconds = math.MaxInt64 / 1_000_000_000

// eventTime reads seconds since 1970 with a fraction, as a number or as text; 0 where there is none. The digits are
// read one by one: a float64 has no room for nanoseconds.
func eventTime(raw json.RawMessage) (pcommon.Timestamp, bool) {
	text := strings.Trim(string(raw), `"`)
	if text == "" || text == "null" {
		return 0, true
	}
	if strings.ContainsAny(text, "eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f < 0 || f > maxSeconds {
			return 0, false
		}
		return pcommon.Timestamp(f * 1e9), true
	}
	whole, fraction, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || seconds >= maxSeconds {
		return 0, false
	}
	if len(fraction) > 9 {
		fraction = fraction[:9]
	}
	nanos := uint64(0)
	if fraction != "" {
		if nanos, err = strconv.ParseUint(fraction+"000000000"[len(fraction):], 10, 63); err != nil {
			return 0, false
		}
	}
	return pcommon.Timestamp(seconds*1e9 + nanos), true
}
