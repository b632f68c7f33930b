// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hec

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

func captured(t testing.TB) []string {
	t.Helper()
	return profiletest.Glob(t, filepath.Join("..", "..", "..", "testdata", "splunk", "*.otlp-logs.pb"))
}

// What Write writes of real requests reads back as the same profiles.
func TestEventsReadBack(t *testing.T) {
	for _, file := range captured(t) {
		body := profiletest.FileBytes(t, file)
		ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(body)
		require.NoError(t, err)
		events, _, err := Write(ld, 0)
		require.NoError(t, err)
		var reader Reader
		read, fault := reader.Read(events)
		require.Nil(t, fault, file)
		want, got := records.Translate(ld, records.Options{}), records.Translate(read, records.Options{})
		require.Empty(t, got.Rejected)
		require.Equal(t, want.Samples, got.Samples, file)
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
	for name, body := range worst.HEC.All(1 << 20) {
		t.Run(name, func(t *testing.T) {
			var ld plog.Logs
			profiletest.RequireCost(t, profiletest.BoundOf(len(body), eventsConstantBytes, eventsFactor), func() {
				ld, _ = readEvents(body, "otel.profiling")
			})
			_ = ld
		})
	}
}

func FuzzEventsCost(f *testing.F) {
	for _, body := range worst.HEC.All(4 << 10) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var ld plog.Logs
		profiletest.RequireCost(t, profiletest.BoundOf(len(body), eventsConstantBytes, eventsFactor), func() {
			ld, _ = readEvents(body, "")
		})
		_ = ld
	})
}

func FuzzEvents(f *testing.F) {
	for _, file := range captured(f) {
		body := profiletest.FileBytes(f, file)
		ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(body)
		require.NoError(f, err)
		events, _, err := Write(ld, 0)
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

// What a body will take is known before it is read: the process's budget holds that many bytes meanwhile.
func TestReserved(t *testing.T) {
	profiletest.SkipLarge(t)
	for name, make := range worst.HEC {
		t.Run(name, func(t *testing.T) {
			body := make(4 << 20)
			memory, err := MemoryOf(body)
			if err != nil {
				return // refused before it is read
			}
			profiletest.RequireReserved(t, profiletest.Bound{}, 4<<20, func(reserve func(int) error) {
				require.NoError(t, reserve(memory))
				reader := Reader{}
				_, _ = reader.Read(body)
			})
		})
	}
}
