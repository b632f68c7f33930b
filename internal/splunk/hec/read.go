// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hec

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
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/xpdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	splunklog "github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
)

// MaxEvents bounds the events of one request: each becomes a record, which takes many times the bytes of an empty
// event.
const MaxEvents = 1 << 17

// received is an event of a body.
type received struct {
	Time       json.RawMessage
	Host       string
	Source     string
	SourceType string `json:"sourcetype"`
	Index      string
	Event      json.RawMessage
	Fields     map[string]any
}

// Fault is the reason for which a body is refused.
type Fault struct {
	// Status is the status of HTTP to answer with.
	Status int
	Answer
}

func badEvent(number int, code Code, reason string) *Fault {
	return &Fault{http.StatusBadRequest, Answer{Code: code, InvalidEvent: &number, Reason: reason}}
}

// Reader reads the events of a body, which are JSON objects one after another, as log records. A body with an event
// that cannot be read is refused as a whole.
type Reader struct {
	// Library is the value of LibraryHeader, Observed the time at which the request arrived.
	Library  string
	Observed pcommon.Timestamp

	logs plog.Logs
	// lastScope and lastContent are the scope and resource of the last event: those of one sender mostly follow each
	// other.
	lastScope   plog.ScopeLogs
	lastContent []byte
	records     int
}

// Read reads a body. It must be called once.
func (e *Reader) Read(body []byte) (plog.Logs, *Fault) {
	e.logs = plog.NewLogs()
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	for {
		var next received
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return plog.Logs{}, badEvent(e.records, InvalidData, reasonOf(err))
		}
		if e.records == MaxEvents {
			return plog.Logs{}, &Fault{http.StatusRequestEntityTooLarge, Answer{
				Code: TooLarge, Reason: "more than " + strconv.Itoa(MaxEvents) + " events",
			}}
		}
		if fault := e.append(&next); fault != nil {
			return plog.Logs{}, fault
		}
		e.records++
	}
	if e.records == 0 {
		return plog.Logs{}, &Fault{http.StatusBadRequest, Answer{Code: NoData}}
	}
	return e.logs, nil
}

// reasonOf explains why an event cannot be read.
func reasonOf(err error) string {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return err.Error()
	case wrong.Field == "":
		return "each event must be an object, one after another and in no list, found: " + wrong.Value
	default:
		return "`" + strings.ToLower(wrong.Field) + "` must not be of type " + wrong.Value
	}
}

func (e *Reader) append(next *received) *Fault {
	at, ok := eventTime(next.Time)
	if !ok {
		return badEvent(e.records, InvalidData, "`time` is not a number of seconds")
	}
	switch {
	case len(next.Event) == 0:
		return badEvent(e.records, EventRequired, "")
	case string(next.Event) == "null" || string(next.Event) == `""`:
		return badEvent(e.records, EventBlank, "")
	}
	profiling := next.SourceType == splunklog.ProfilingName || e.Library == splunklog.ProfilingName ||
		next.Fields[attributeSourceType] == splunklog.ProfilingName
	host := next.Host
	if profiling && host == unknownHost {
		host = ""
	}
	var resource, scope, attributes xpdata.MapBuilder // Map.Put would look through all fields before each
	for _, own := range [...]struct{ key, value string }{
		{attributeIndex, next.Index}, {attributeSource, next.Source}, {attributeSourceType, next.SourceType},
		{attributeHost, host},
	} {
		if _, isField := next.Fields[own.key]; isField || own.value == "" {
			continue // a field of the same name takes precedence
		}
		to := &resource
		if profiling && own.key == attributeSourceType {
			to = &attributes
		}
		to.AppendEmpty(own.key).SetStr(own.value)
	}
	for _, key := range slices.Sorted(maps.Keys(next.Fields)) {
		value := next.Fields[key]
		if _, nested := value.(map[string]any); nested {
			return badEvent(e.records, InvalidFields, "field "+strconv.Quote(key)+" is an object")
		}
		to := &attributes
		switch {
		case profiling && strings.HasPrefix(key, severityPrefix):
			continue // profiles have no severity
		case !profiling || isRecordField(key):
		case strings.HasPrefix(key, "otel.scope.") || strings.HasPrefix(key, "pprof.scope."):
			to = &scope
		default:
			to = &resource
		}
		setValue(to.AppendEmpty(key), value)
	}
	record := e.scope(&resource, &scope, profiling).LogRecords().AppendEmpty()
	attributes.UnsafeIntoMap(record.Attributes())
	record.SetTimestamp(at)
	record.SetObservedTimestamp(e.Observed)
	// Fast path: a string, such as a profile in base64, which the decoder would copy a few times.
	if next.Event[0] == '"' {
		var s string
		if err := json.Unmarshal(next.Event, &s); err != nil {
			return badEvent(e.records, InvalidData, reasonOf(err))
		}
		record.Body().SetStr(s)
		return nil
	}
	var content any
	decoder := json.NewDecoder(bytes.NewReader(next.Event))
	decoder.UseNumber()
	if err := decoder.Decode(&content); err != nil {
		return badEvent(e.records, InvalidData, reasonOf(err))
	}
	setValue(record.Body(), content)
	return nil
}

// isRecordField reports whether a field of a profiling event is an attribute of its record, not of its resource or
// scope: HEC has all in one list.
func isRecordField(key string) bool {
	for _, prefix := range []string{"profiling.", "source.event.", "thread.", "memory.allocated", "otel.log.",
		"sampler.", "pprof.profile.", "profile."} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		attributeSourceType, splunklog.KeyTraceID, splunklog.KeySpanID, kind.TemporalityAttribute,
	}, key)
}

// scope returns the scope for a record of this resource and these attributes of a scope. Events stay in their order.
func (e *Reader) scope(ofResource, ofScope *xpdata.MapBuilder, profiling bool) plog.ScopeLogs {
	resource, scope := pcommon.NewMap(), pcommon.NewMap()
	ofResource.UnsafeIntoMap(resource)
	ofScope.UnsafeIntoMap(scope)
	// Map.Equal takes time quadratic in the number of entries.
	content := dictionary.AppendMap(dictionary.AppendMap(nil, resource), scope)
	name := e.Library
	if profiling {
		name = splunklog.ProfilingName
	}
	if e.records > 0 && bytes.Equal(e.lastContent, content) && e.lastScope.Scope().Name() == name {
		return e.lastScope
	}
	rl := e.logs.ResourceLogs().AppendEmpty()
	resource.MoveTo(rl.Resource().Attributes())
	e.lastScope, e.lastContent = rl.ScopeLogs().AppendEmpty(), content
	scope.MoveTo(e.lastScope.Scope().Attributes())
	e.lastScope.Scope().SetName(name)
	return e.lastScope
}

// setValue sets a value that the JSON decoder made. Maps are sorted, so that the same event becomes the same record.
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

// eventTime reads seconds since 1970 with a fraction, as a number or as a string; 0 if there is none. A float64 cannot
// hold nanoseconds, so it is only for numbers with an exponent.
func eventTime(raw json.RawMessage) (pcommon.Timestamp, bool) {
	s := strings.Trim(string(raw), `"`)
	if s == "" || s == "null" {
		return 0, true
	}
	if strings.ContainsAny(s, "eE") {
		f, err := strconv.ParseFloat(s, 64)
		return pcommon.Timestamp(f * 1e9), err == nil && f >= 0 && f <= math.MaxInt64/1e9
	}
	sinceEpoch, err := time.ParseDuration(s + "s")
	return pcommon.Timestamp(sinceEpoch), err == nil && strings.Trim(s, ".0123456789") == ""
}

// costs are what Reader takes: encoding/json copies strings, and collects fields in a map, before they become records.
var costs = size.JSONCosts{Byte: 6, Container: 224, Field: 220, Element: 64}

// MemoryOf returns the memory that Read will take for a body, or an error if it is out of proportion to the body.
func MemoryOf(body []byte) (int, error) { return costs.Of(body) }
