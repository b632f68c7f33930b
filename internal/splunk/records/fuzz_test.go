// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"encoding/base64"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// requireSound expects conformant profiles, and every record either read or rejected.
func requireSound(t *testing.T, ld plog.Logs) {
	ld.MarkReadOnly()
	for _, opts := range []Options{{}, {Limits: scan.Limits{MaxStackDepth: 3, MaxProfileBytes: 4096}}} {
		result := Translate(ld, opts)
		if err := profiletest.Check(result.Profiles); err != nil {
			t.Fatal(err)
		}
		if got := result.Profiling + result.Others; got != ld.LogRecordCount() {
			t.Fatalf("%d of %d records are counted", got, ld.LogRecordCount())
		}
		if rest := Rest(ld).LogRecordCount(); rest != result.Others {
			t.Fatalf("%d records are passed on, but %d are others", rest, result.Others)
		}
		if s := result.Profiles.SampleCount(); s > result.Samples {
			t.Fatalf("%d samples of %d", s, result.Samples)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add(javaStack, "cpu", int64(1), int64(10))
	f.Add("\n\nat total(a.js:1:2 3-4)\nat (x)", "allocation", int64(-1), int64(-1))
	f.Fuzz(func(t *testing.T, body, typ string, time, period int64) {
		ld, record := newRecord(body, keyFormat, "text", keyType, typ, keyEventPeriod, period, keyEventName, body)
		record.SetTimestamp(pcommon.Timestamp(time))
		appendRecord(ld.ResourceLogs().At(0).ScopeLogs().At(0), body, keyEventPeriod, typ).
			SetObservedTimestamp(record.Timestamp())
		requireSound(t, ld)
	})
}

// FuzzPprof mutates a pprof before it is compressed, so that the fuzzer reaches its content.
func FuzzPprof(f *testing.F) {
	for _, ld := range captured(f) {
		f.Add(decoded(f, onlyRecord(ld).Body().Str()), false)
	}
	f.Fuzz(func(t *testing.T, pprof []byte, allocation bool) {
		typ := "cpu"
		if allocation {
			typ = "allocation"
		}
		body := base64.StdEncoding.EncodeToString(pprof)
		ld, _ := newRecord(body, keyFormat, FormatPprof.String(), keyType, typ)
		appendRecord(ld.ResourceLogs().At(0).ScopeLogs().At(0), body, keyFormat, FormatPprof.String(), keyType, typ,
			keyEventTime, 5).SetTimestamp(7)
		requireSound(t, ld)
	})
}

// FuzzRequest mutates a whole request, as the servers get it.
func FuzzRequest(f *testing.F) {
	for _, ld := range captured(f) {
		body, err := new(plog.ProtoMarshaler).MarshalLogs(ld)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, request []byte) {
		ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(request)
		if err != nil {
			return
		}
		requireSound(t, ld)
	})
}
