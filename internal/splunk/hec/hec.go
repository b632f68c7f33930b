// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package hec is Splunk's HTTP Event Collector in both directions: Reader reads events as log records, Write writes log
// records as events, and Answer is what a server answers.
package hec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
)

// LibraryHeader names the instrumentation library that all events of a request are from.
const LibraryHeader = "X-Splunk-Instrumentation-Library"

// MaxLibraryBytes bounds its value, which each event of a body can repeat.
const MaxLibraryBytes = 256

// The attributes for which an event has a field of its own, as in the exporter splunk_hec.
const (
	attributeHost       = "host.name"
	attributeSource     = "com.splunk.source"
	attributeSourceType = records.KeySourceType
	attributeIndex      = "com.splunk.index"
	attributeToken      = "com.splunk.hec.access_token"
	// unknownHost is the host of a record whose resource has none.
	unknownHost = "unknown"
	// severityPrefix is that of fields for the severity of a record.
	severityPrefix = "otel.log.severity."
)

// Code is the code in an answer. The protocol has a text for each.
type Code int

// The codes that servers of this project use (Splunk Enterprise, "Troubleshoot HTTP Event Collector").
const (
	Success              Code = 0
	TokenRequired        Code = 2
	InvalidAuthorization Code = 3
	InvalidToken         Code = 4
	NoData               Code = 5
	InvalidData          Code = 6
	InternalError        Code = 8
	Busy                 Code = 9
	EventRequired        Code = 12
	EventBlank           Code = 13
	AckDisabled          Code = 14
	InvalidFields        Code = 15
	Healthy              Code = 17
	TooLarge             Code = 27
)

// Texts are the texts of the codes.
var Texts = map[Code]string{
	Success:              "Success",
	TokenRequired:        "Token is required",
	InvalidAuthorization: "Invalid authorization",
	InvalidToken:         "Invalid token",
	NoData:               "No data",
	InvalidData:          "Invalid data format",
	InternalError:        "Internal server error",
	Busy:                 "Server is busy",
	EventRequired:        "Event field is required",
	EventBlank:           "Event field cannot be blank",
	AckDisabled:          "ACK is disabled",
	InvalidFields:        "Error in handling indexed fields",
	Healthy:              "HEC is healthy",
	TooLarge:             "Request entity too large",
}

// Answer is an answer's body. Reason and Rejected are this project's own: the texts of HEC are fixed.
type Answer struct {
	Text         string `json:"text"`
	Code         Code   `json:"code"`
	InvalidEvent *int   `json:"invalid-event-number,omitempty"`
	Rejected     int    `json:"rejected,omitempty"`
	Reason       string `json:"reason,omitempty"`
}

type event struct {
	Time       json.Number    `json:"time,omitempty"`
	Host       string         `json:"host"`
	Source     string         `json:"source,omitempty"`
	SourceType string         `json:"sourcetype"`
	Index      string         `json:"index,omitempty"`
	Event      string         `json:"event"`
	Fields     map[string]any `json:"fields,omitempty"`

	// leftOut is the number of attributes that have no field, since another one has their name.
	leftOut int
}

// Write writes profiling records as events, one after another. The attributes of resource, scope and record become
// fields: HEC has one list for all. Of several with one name the resource's stays, which identifies the sender, then
// the scope's, unless the name is one that describes the record; leftOut counts the others. Each event repeats those of
// resource and scope, so that few bytes can become many: after the event that makes the body larger than limit bytes,
// Write stops. 0 means no limit.
func Write(ld plog.Logs, limit int) (body []byte, leftOut int, err error) {
	var events bytes.Buffer
	encoder := json.NewEncoder(&events)
	encoder.SetEscapeHTML(false)
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				e := event{Host: unknownHost, SourceType: records.ProfilingName, Fields: map[string]any{}}
				e.addAttributes(rl.Resource().Attributes())
				e.addAttributes(sl.Scope().Attributes())
				e.addRecord(record)
				e.moveMembers()
				leftOut += e.leftOut
				if err := encoder.Encode(&e); err != nil {
					return nil, 0, err
				}
				if limit > 0 && events.Len() > limit {
					return events.Bytes(), leftOut, nil
				}
			}
		}
	}
	return events.Bytes(), leftOut, nil
}

// setField sets a field. A name that describes a record belongs to the record, whose attributes come last.
func (e *event) setField(key string, value any) {
	before, exists := e.Fields[key]
	if exists && !reflect.DeepEqual(before, value) {
		e.leftOut++
	}
	if !exists || records.DescribesRecord(key) {
		e.Fields[key] = value
	}
}

func (e *event) addAttributes(attributes pcommon.Map) {
	for key, value := range attributes.All() {
		if key != attributeToken { // a secret, which must not be sent to others
			e.putField(key, value)
		}
	}
}

// moveMembers makes HEC's own members of the fields with their names.
func (e *event) moveMembers() {
	for key, member := range map[string]*string{
		attributeHost: &e.Host, attributeSource: &e.Source, attributeSourceType: &e.SourceType, attributeIndex: &e.Index,
	} {
		if value, ok := e.Fields[key]; ok {
			*member = fmt.Sprint(value)
			delete(e.Fields, key)
		}
	}
}

// putField adds a field. Values must not be nested in HEC. A map becomes a field for each of its values.
func (e *event) putField(key string, value pcommon.Value) {
	switch value.Type() {
	case pcommon.ValueTypeMap:
		for inner, v := range value.Map().All() {
			e.putField(key+"."+inner, v)
		}
	case pcommon.ValueTypeSlice:
		list := make([]any, 0, value.Slice().Len())
		for _, v := range value.Slice().All() {
			if v.Type() == pcommon.ValueTypeMap || v.Type() == pcommon.ValueTypeSlice {
				e.setField(key, value.AsString()) // JSON
				return
			}
			list = append(list, plain(v))
		}
		e.setField(key, list)
	default:
		e.setField(key, plain(value))
	}
}

func plain(value pcommon.Value) any {
	switch value.Type() {
	case pcommon.ValueTypeBool, pcommon.ValueTypeInt:
		return value.AsRaw()
	case pcommon.ValueTypeDouble:
		if d := value.Double(); !math.IsInf(d, 0) && !math.IsNaN(d) {
			return d
		}
	default:
	}
	return value.AsString() // JSON has no infinities
}

func (e *event) addRecord(record plog.LogRecord) {
	e.addAttributes(record.Attributes())
	e.setTime(record.Timestamp())
	if trace := record.TraceID(); !trace.IsEmpty() {
		e.setField(records.KeyTraceID, trace.String())
	}
	if span := record.SpanID(); !span.IsEmpty() {
		e.setField(records.KeySpanID, span.String())
	}
	e.Event = record.Body().AsString() // bytes become base64
}

// setTime writes the time as Splunk's collector does: seconds, rounded to the millisecond. If that is not exact, a
// field of this project has it in nanoseconds.
func (e *event) setTime(at pcommon.Timestamp) {
	if at == 0 {
		return // the server sets the time
	}
	const perMilli, perSecond = uint64(time.Millisecond), uint64(time.Second)
	if uint64(at)%perMilli != 0 {
		e.setField(records.KeyEventTimeNanos, uint64(at))
	}
	// Readers have no later time, and refuse all events of a request for one.
	millis := min(uint64(at)/perMilli+(uint64(at)%perMilli)/(perMilli/2), math.MaxInt64/perMilli)
	e.Time = json.Number(fmt.Sprintf("%d.%03d", millis/(perSecond/perMilli), millis%(perSecond/perMilli)))
}
