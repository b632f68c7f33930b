// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package hec

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

func TestEventTime(t *testing.T) {
	const start = 1_700_000_000_000_000_000
	for _, tc := range []struct {
		at    uint64
		time  json.Number
		nanos any
	}{
		{0, "", nil},
		{start, "1700000000.000", nil},
		{start + 120_000_000, "1700000000.120", nil},
		{start + 120_499_999, "1700000000.120", uint64(start + 120_499_999)},
		{start + 120_500_000, "1700000000.121", uint64(start + 120_500_000)},
		{start + 999_999_999, "1700000001.000", uint64(start + 999_999_999)},
		{math.MaxInt64, "9223372036.854", uint64(math.MaxInt64)},
	} {
		e := event{Fields: map[string]any{}}
		e.setTime(pcommon.Timestamp(tc.at))
		assert.Equal(t, tc.time, e.Time)
		assert.Equal(t, tc.nanos, e.Fields["source.event.time.unix_nano"])
		_, isRead := eventTime(json.RawMessage(e.Time))
		assert.True(t, isRead)
	}
}

// The permitted cost, for the bytes of the records and of the limit together.
const (
	writeConstantBytes = 4 << 20
	writeFactor        = 16
)

// What each event repeats costs no more than the limit.
func TestWriteIsBounded(t *testing.T) {
	const limit = 1 << 20
	for name, of := range map[string]func(resource pcommon.Map){
		"a long attribute": func(resource pcommon.Map) { resource.PutStr("long", strings.Repeat("\n", 128<<10)) },
		"a long list": func(resource pcommon.Map) {
			list := resource.PutEmptySlice("list")
			for range 32 << 10 {
				list.AppendEmpty().SetInt(1)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ld := plog.NewLogs()
			rl := ld.ResourceLogs().AppendEmpty()
			of(rl.Resource().Attributes())
			logs := rl.ScopeLogs().AppendEmpty().LogRecords()
			for range 2000 {
				logs.AppendEmpty()
			}
			var body []byte
			var err error
			size := new(plog.ProtoMarshaler).LogsSize(ld)
			profiletest.RequireCost(t, profiletest.BoundOf(size+limit, writeConstantBytes, writeFactor), func() {
				body, _, err = Write(ld, limit)
			})
			require.NoError(t, err)
			assert.Greater(t, len(body), limit)
		})
	}
}

// A resource, its scope and a record can have attributes of one name. The resource's is the field, and others are
// counted.
func TestAttributesOfOneName(t *testing.T) {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("region", "eu")
	rl.Resource().Attributes().PutStr("host.name", "web-1")
	rl.Resource().Attributes().PutStr("profiling.data.format", "mine")
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().Attributes().PutStr("region", "eu")
	record := sl.LogRecords().AppendEmpty()
	record.Attributes().PutStr("region", "us")
	record.Attributes().PutStr("host.name", "db-1")
	record.Attributes().PutStr("profiling.data.format", "text")
	record.Attributes().PutStr("own", "kept")
	record.Attributes().PutEmptySlice("nested").AppendEmpty().SetEmptyMap().PutStr("a", "b")
	body, leftOut, err := Write(ld, 0)
	require.NoError(t, err)
	var got event
	require.NoError(t, json.Unmarshal(body, &got))
	require.Equal(t, "web-1", got.Host)
	require.Equal(t, map[string]any{"region": "eu", "profiling.data.format": "text", "own": "kept",
		"nested": `[{"a":"b"}]`}, got.Fields)
	require.Equal(t, 3, leftOut)
}
