// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hec

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func captured(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "splunk", "*.otlp-logs.pb"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// What Write writes of real requests reads back as the same profiles.
func TestEventsReadBack(t *testing.T) {
	for _, file := range captured(t) {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(body)
		require.NoError(t, err)
		events, err := Write(ld, 0)
		require.NoError(t, err)
		var reader Reader
		read, fault := reader.Read(events)
		require.Nil(t, fault, file)
		want, got := records.Translate(ld, records.Options{}), records.Translate(read, records.Options{})
		require.Empty(t, got.Rejected)
		require.Equal(t, want.Samples, got.Samples, file)
	}
}

// worstEvents are bodies of HEC that cost most for their size.
func worstEvents() map[string]string {
	var fields, deep strings.Builder
	for i := range 80_000 {
		fmt.Fprintf(&fields, `"k%d":1,`, i)
	}
	for i := range 40_000 {
		fmt.Fprintf(&deep, `"k%d":{},`, i)
	}
	event := `{"event":1,"fields":{` + fields.String() + `"x":1}}`
	return map[string]string{
		"many fields":           event,
		"many fields, twice":    event + event,
		"many fields, profiles": `{"sourcetype":"otel.profiling",` + event[1:],
		"a large object":        `{"event":{` + deep.String() + `"x":{}}}`,
		"a list of numbers":     `{"event":[` + strings.Repeat("1,", 1<<18) + `1]}`,
		"a list of lists":       `{"event":[` + strings.Repeat("[],", 1<<18) + `1]}`,
		"lists in fields": `{"event":1,"fields":{"a":[{` + fields.String() + `"x":1}]}}{"event":1,"fields":{"a":[{` +
			fields.String() + `"x":1}]}}`,
		"nested":          `{"event":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`,
		"tiny events":     strings.Repeat(`{"event":1}`, MaxEvents),
		"too many events": strings.Repeat(`{"event":1}`, 1<<18),
		"empty objects":   strings.Repeat(`{}`, 1<<18),
		"spaces":          strings.Repeat(" ", 1<<20),
		"a long number":   `{"event":` + strings.Repeat("1", 1<<20) + `}`,
		"a long text":     `{"event":"` + strings.Repeat(`\u0000`, 1<<17) + `"}`,
	}
}

// readEvents reads a body as the server does.
func readEvents(body []byte, library string) (ld plog.Logs, fault *Fault) {
	if _, err := size.JSON(body); err != nil {
		return plog.Logs{}, &Fault{}
	}
	reader := Reader{Library: library}
	return reader.Read(body)
}

// The permitted cost.
const (
	eventsConstantBytes = 8 << 20
	eventsFactor        = 48
)

func TestEventsAreBounded(t *testing.T) {
	for name, body := range worstEvents() {
		t.Run(name, func(t *testing.T) {
			var ld plog.Logs
			var fault *Fault
			cost := profiletest.MeasureCost(t, func() { ld, fault = readEvents([]byte(body), "otel.profiling") })
			t.Logf("%d bytes, fault %v: %v", len(body), fault, cost)
			_ = ld
			profiletest.RequireBounded(t, cost, len(body), eventsConstantBytes, eventsFactor)
		})
	}
}

func FuzzEventsCost(f *testing.F) {
	for _, body := range worstEvents() {
		f.Add([]byte(body[:min(len(body), 4<<10)]))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var ld plog.Logs
		cost := profiletest.MeasureCost(t, func() { ld, _ = readEvents(body, "") })
		_ = ld
		profiletest.RequireBounded(t, cost, len(body), eventsConstantBytes, eventsFactor)
	})
}

func FuzzEvents(f *testing.F) {
	for _, file := range captured(f) {
		body, err := os.ReadFile(file)
		require.NoError(f, err)
		ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(body)
		require.NoError(f, err)
		events, err := Write(ld, 0)
		require.NoError(f, err)
		f.Add(string(events), "")
	}
	f.Add(`{"event": {"a": [1, {"b": null}]}, "time": "1.5", "fields": {"x": [1, "y"]}} {"event": 1}`, "otel.profiling")
	f.Fuzz(func(t *testing.T, body, library string) {
		reader := Reader{Library: library}
		ld, fault := reader.Read([]byte(body))
		if fault != nil {
			if Texts[fault.Code] == "" || fault.Status < 400 {
				t.Fatalf("%+v", fault)
			}
			return
		}
		if ld.LogRecordCount() != reader.records || reader.records == 0 {
			t.Fatalf("%d records of %d events", ld.LogRecordCount(), reader.records)
		}
		result := records.Translate(ld, records.Options{Limits: scan.Limits{MaxProfileBytes: 1 << 20}})
		if err := profiletest.Check(result.Profiles); err != nil {
			t.Fatal(err)
		}
	})
}
