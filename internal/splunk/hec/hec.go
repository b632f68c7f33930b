// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package hec is Splunk's HTTP Event Collector in both directions: Reader reads events as log records, Write writes log
// records as events, and Answer is what a server answers.
package hec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
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
}

// Write writes profiling records as events, one after another. The attributes of resource, scope and record become
// fields: HEC has one list for all. Each event repeats those of resource and scope, so that few bytes can become many:
// after the event that makes the body larger than limit bytes, Write stops. 0 means no limit.
func Write(ld plog.Logs, limit int) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				e := event{Host: unknownHost, SourceType: records.ProfilingName, Fields: map[string]any{}}
				e.addAttributes(rl.Resource().Attributes())
				e.addAttributes(sl.Scope().Attributes())
				e.addAttributes(record.Attributes())
				e.addRecord(record)
				if err := encoder.Encode(&e); err != nil {
					return nil, err
				}
				if limit > 0 && body.Len() > limit {
					return body.Bytes(), nil
				}
			}
		}
	}
	return body.Bytes(), nil
}

func (e *event) addAttributes(attributes pcommon.Map) {
	for key, value := range attributes.All() {
		switch key {
		case attributeHost:
			e.Host = value.AsString()
		case attributeSource:
			e.Source = value.AsString()
		case attributeSourceType:
			e.SourceType = value.AsString()
		case attributeIndex:
			e.Index = value.AsString()
		case attributeToken:
			// This is a secret, which must not be sent to others.
		default:
			e.putField(key, value)
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
				e.Fields[key] = value.AsString() // JSON
				return
			}
			list = append(list, plain(v))
		}
		e.Fields[key] = list
	default:
		e.Fields[key] = plain(value)
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
	e.setTime(record.Timestamp())
	if trace := record.TraceID(); !trace.IsEmpty() {
		e.Fields[records.KeyTraceID] = trace.String()
	}
	if span := record.SpanID(); !span.IsEmpty() {
		e.Fields[records.KeySpanID] = span.String()
	}
	if body := record.Body(); body.Type() == pcommon.ValueTypeBytes {
		e.Event = base64.StdEncoding.EncodeToString(body.Bytes().AsRaw())
	} else {
		e.Event = body.AsString()
	}
}

// setTime writes the time as Splunk's collector does: seconds, rounded to the millisecond. If that is not exact, a
// field of this project has it in nanoseconds.
func (e *event) setTime(at pcommon.Timestamp) {
	if at == 0 {
		return // the server sets the time
	}
	const perMilli, perSecond = uint64(time.Millisecond), uint64(time.Second)
	if uint64(at)%perMilli != 0 {
		e.Fields[records.KeyEventTimeNanos] = uint64(at)
	}
	millis := uint64(at)/perMilli + (uint64(at)%perMilli)/(perMilli/2)
	e.Time = json.Number(fmt.Sprintf("%d.%03d", millis/(perSecond/perMilli), millis%(perSecond/perMilli)))
}
