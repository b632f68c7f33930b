// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// Only the record that cannot be read is rejected, and nothing of it is in the profiles of the others.
func TestRejections(t *testing.T) {
	good := func() (plog.Logs, plog.LogRecord) {
		return newRecord(javaStack, keyFormat, "text", keyType, "cpu")
	}
	alone, _ := good()
	want := profiletest.Render(translated(t, alone, Options{}).Profiles)
	for name, tc := range map[string]struct {
		body       any
		attributes []any
		reason     Reason
		says       string
	}{
		"a format of tomorrow": {"x", []any{keyFormat, "jfr"}, ReasonFormat, `"jfr"`},
		"a type of tomorrow":   {javaStack, []any{keyFormat, "text", keyType, "wall"}, ReasonType, `"wall"`},
		"nothing":              {nil, []any{keyFormat, "text"}, ReasonEmpty, "empty"},
		"an empty string":      {"", []any{keyFormat, FormatPprof.String()}, ReasonEmpty, "empty"},
		"a number":             {int64(7), []any{keyFormat, "text"}, ReasonBody, "Int"},
		"no base64":            {"H4sI!", []any{keyFormat, FormatPprof.String()}, ReasonBase64, "base64"},
		"base64 of text": {base64.StdEncoding.EncodeToString([]byte("heap profile: 1: 2")),
			[]any{keyFormat, FormatPprof.String()}, ReasonNotPprof, "text dump"},
		"half a gzip": {encoded([]byte(javaStack))[:80], []any{keyFormat, FormatPprof.String()}, ReasonNotPprof,
			"truncated gzip"},
		"gzip of text":        {encoded([]byte("<html>")), nil, ReasonNotPprof, "HTML"},
		"no stack":            {"hello\nworld\nI am a log line", []any{keyFormat, "text"}, ReasonNotAStack, "frame"},
		"no stack, no format": {"hello", nil, ReasonNotAStack, "frame"},
		"a deep stack": {"\n\n" + strings.Repeat("at f(x:1)\n", 1025), []any{keyFormat, "text"}, ReasonTooDeep,
			"1024"},
	} {
		t.Run(name, func(t *testing.T) {
			ld, _ := good()
			sl := ld.ResourceLogs().At(0).ScopeLogs().At(0)
			bad := appendRecord(sl, "", tc.attributes...)
			require.NoError(t, bad.Body().FromRaw(tc.body))
			result := Translate(ld, Options{})
			require.Len(t, result.Rejected, 1)
			assert.Equal(t, 1, result.Rejected[0].Record)
			assert.Equal(t, tc.reason, result.Rejected[0].Reason)
			assert.ErrorContains(t, result.Rejected[0], tc.says)
			assert.Equal(t, 2, result.Profiling)
			assert.Equal(t, want, profiletest.Render(result.Profiles))
			assert.NoError(t, profiletest.Check(result.Profiles))
		})
	}
}

// A bomb unpacks to much more than its own size. Unpacking stops at the limit of the request.
func TestBombs(t *testing.T) {
	const limit = 1 << 20
	// Valid pprof: strings that nothing refers to.
	filler := func(size int) string { return encoded(worst.Field(6, make([]byte, size))) }
	ld, _ := newRecord(filler(limit+1), keyFormat, FormatPprof.String())
	sl := ld.ResourceLogs().At(0).ScopeLogs().At(0)
	appendRecord(sl, filler(limit/2), keyFormat, FormatPprof.String())
	appendRecord(sl, filler(limit/2), keyFormat, FormatPprof.String())
	appendRecord(sl, javaStack, keyFormat, "text")
	appendRecord(sl, strings.Repeat("x", limit), keyFormat, "text")
	result := Translate(ld, Options{Limits: scan.Limits{MaxProfileBytes: limit}})
	var records []int
	for _, r := range result.Rejected {
		assert.Equal(t, ReasonTooLarge, r.Reason, r.Err)
		records = append(records, r.Record)
	}
	assert.Equal(t, []int{0, 2, 4}, records)
	assert.Equal(t, 1, result.Samples)
}

// Texts share the limit of the request too.
func TestTextsShareTheLimit(t *testing.T) {
	ld, _ := newRecord(javaStack, keyFormat, "text")
	appendRecord(ld.ResourceLogs().At(0).ScopeLogs().At(0), javaStack, keyFormat, "text")
	assert.Empty(t, Translate(ld, Options{Limits: scan.Limits{MaxProfileBytes: 2 * len(javaStack)}}).Rejected)
	result := Translate(ld, Options{Limits: scan.Limits{MaxProfileBytes: 2*len(javaStack) - 1}})
	require.Len(t, result.Rejected, 1)
	assert.Equal(t, 1, result.Rejected[0].Record)
}

// Samples of all formats share a limit too.
func TestSamplesShareALimit(t *testing.T) {
	p := &rawPprof{}
	for range 3 {
		p.sample(nil, nil)
	}
	ld, _ := newRecord(p.encode(), keyType, "cpu")
	sl := ld.ResourceLogs().At(0).ScopeLogs().At(0)
	appendRecord(sl, p.encode(), keyType, "cpu")
	appendRecord(sl, javaStack)
	appendRecord(sl, javaStack)
	result := Translate(ld, Options{Limits: scan.Limits{MaxSamples: 4}})
	assert.Equal(t, 4, result.Samples)
	var records []int
	for _, r := range result.Rejected {
		assert.Equal(t, ReasonTooLarge, r.Reason)
		records = append(records, r.Record)
	}
	assert.Equal(t, []int{1, 3}, records)
}

func TestSamplesOfAPprofAreDroppedAlone(t *testing.T) {
	p := &rawPprof{}
	p.str("")
	p.frame(1, "f", "x", -1)
	p.sample([]uint64{1, 1, 1}, nil, keyEventTime, 1000)
	p.sample([]uint64{9}, nil, keyEventTime, 1000)
	p.sample([]uint64{1}, nil, keyEventTime, 1000)
	ld, _ := newRecord(p.encode(), keyType, "cpu")
	result := translated(t, ld, Options{Limits: scan.Limits{MaxStackDepth: 2}})
	assert.Equal(t, 1, result.Samples)
	assert.Equal(t, 1, result.Dropped[scan.DropStackTooDeep])
	assert.Equal(t, 1, result.Dropped[scan.DropUnknownLocation])
	assert.Equal(t, 1, result.Repaired[scan.RepairNegativeLine])
	assert.Zero(t, result.Repaired[scan.RepairMissingSampleTypes])
}

func TestRest(t *testing.T) {
	ordinary := plog.NewLogs()
	rl := ordinary.ResourceLogs().AppendEmpty()
	rl.SetSchemaUrl("s")
	rl.Resource().Attributes().PutStr("service.name", "shop")
	for _, name := range []string{"a", "b"} {
		sl := rl.ScopeLogs().AppendEmpty()
		sl.Scope().SetName(name)
		sl.SetSchemaUrl(name)
		appendRecord(sl, "hello "+name, KeySourceType, "httpevent", "n", 1)
	}
	ordinary.MarkReadOnly()
	assert.Equal(t, ordinary, Rest(ordinary), "itself")

	mixed := plog.NewLogs()
	profiles, _ := newRecord(javaStack, keyFormat, "text")
	profiles.ResourceLogs().At(0).CopyTo(mixed.ResourceLogs().AppendEmpty())
	ordinary.ResourceLogs().At(0).CopyTo(mixed.ResourceLogs().AppendEmpty())
	other := mixed.ResourceLogs().At(1).ScopeLogs()
	appendRecord(other.At(1), javaStack, KeySourceType, ProfilingName)
	appendRecord(other.AppendEmpty(), javaStack, KeySourceType, ProfilingName)
	bySourceType := mixed.ResourceLogs().AppendEmpty()
	bySourceType.Resource().Attributes().PutStr(KeySourceType, ProfilingName)
	appendRecord(bySourceType.ScopeLogs().AppendEmpty(), javaStack)
	mixed.MarkReadOnly()

	result := translated(t, mixed, Options{})
	assert.Equal(t, 4, result.Samples)
	assert.Equal(t, 4, result.Profiling)
	assert.Equal(t, 2, result.Others)
	rest := Rest(mixed)
	rest.MarkReadOnly()
	assert.Equal(t, ordinary, rest)
}

func TestRecordsAreCountedByWhatTheySay(t *testing.T) {
	ld, _ := newRecord("x", keyFormat, "f", keyType, "t", keySource, "s")
	sl := ld.ResourceLogs().At(0).ScopeLogs().At(0)
	appendRecord(sl, javaStack, keySource, "snapshot")
	appendRecord(sl, javaStack, keyAllocated, "77")
	result := Translate(ld, Options{})
	assert.Equal(t, 1, result.Records[FormatOther][TypeOther][SourceOther])
	assert.Equal(t, 1, result.Records[FormatText][TypeCPU][SourceSnapshot])
	assert.Equal(t, 1, result.Records[FormatText][TypeAllocation][SourceNone])
}
