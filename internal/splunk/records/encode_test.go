// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// records checks the counts of all parts, and returns their records as one request.
func records(t testing.TB, pd pprofile.Profiles, opts EncodeOptions) (plog.Logs, []EncodedPart) {
	t.Helper()
	pd.MarkReadOnly()
	all := plog.NewLogs()
	var parts []EncodedPart
	encoder := NewEncoder(pd, opts)
	for part, ok := encoder.Next(); ok; part, ok = encoder.Next() {
		require.Equal(t, part.Records, part.Logs.LogRecordCount())
		require.NoError(t, profiletest.Check(part.Profiles, profiletest.AllowRepeatedSamples()))
		parts = append(parts, part)
		part.Logs.ResourceLogs().MoveAndAppendTo(all.ResourceLogs())
	}
	require.Zero(t, encoder.Dropped)
	return all, parts
}

func eachRecord(ld plog.Logs, visit func(plog.LogRecord)) {
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				visit(record)
			}
		}
	}
}

// pprofs returns the captured pprof payloads as profiles, but for two that are as large as the others ten times over.
func pprofs(t testing.TB) map[string]pprofile.Profiles {
	t.Helper()
	files := profiletest.Glob(t, filepath.Join("..", "..", "..", "testdata", "pprof", "*"))
	all := map[string]pprofile.Profiles{}
	for _, file := range files {
		payload := profiletest.FileBytes(t, file)
		pd, _, err := decode.Decode(payload, decode.Options{IncludeOriginalPayload: len(payload) < 10_000})
		if err == nil && pd.SampleCount() > 0 && len(payload) < 200_000 {
			pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", filepath.Base(file))
			all[filepath.Base(file)] = pd
		}
	}
	require.Greater(t, len(all), 5)
	return all
}

// The profiles of each captured record, sent and received again as pprof and as OTLP, are unchanged.
func TestCapturedRecordsComeBack(t *testing.T) {
	for name, ld := range captured(t) {
		want := translated(t, ld, Options{})
		for _, format := range []Format{FormatPprof, FormatOTLP} {
			t.Run(name+"/"+format.String(), func(t *testing.T) {
				again, parts := records(t, want.Profiles, EncodeOptions{Format: format})
				got := translated(t, again, Options{})
				assert.Equal(t, want.Samples, got.Samples)
				sent := 0
				for _, part := range parts {
					sent += part.Samples
				}
				assert.Equal(t, want.Samples, sent)
				wanted := profiletest.Clone(want.Profiles)
				if format == FormatPprof {
					withoutIDs(wanted) // they are hashes of the bodies, which differ in bytes
					withoutIDs(got.Profiles)
				}
				assert.NoError(t, profiletest.Equal(wanted, got.Profiles))
			})
		}
	}
}

// Of captured pprofs OTLP keeps all: resources, units, links and payloads.
func TestOTLPIsWhole(t *testing.T) {
	for name, pd := range pprofs(t) {
		t.Run(name, func(t *testing.T) {
			ld, parts := records(t, pd, EncodeOptions{Format: FormatOTLP})
			require.Len(t, parts, 1)
			assert.Equal(t, observations(pd), parts[0].Samples)
			result := Translate(ld, Options{})
			require.Empty(t, result.Rejected)
			assert.Equal(t, observations(pd), result.Samples)
			assert.NoError(t, profiletest.Equal(pd, result.Profiles, profiletest.IgnoreOrder()))
		})
	}
	ld, _ := records(t, shop(), EncodeOptions{Format: FormatOTLP})
	assert.NoError(t, profiletest.Equal(shop(), translated(t, ld, Options{}).Profiles))
	eachRecord(ld, func(record plog.LogRecord) {
		assert.Equal(t, map[string]any{
			"com.splunk.sourcetype": "otel.profiling", "profiling.data.format": "otlp",
			"profiling.data.version": "opentelemetry.proto.profiles.v1development", "profiling.data.total.frame.count": int64(5),
		}, record.Attributes().AsRaw())
	})
}

const start = 1_700_000_000_000_000_123

// shop has what captured profiles lack: several resources, nanoseconds, values with times, odd attributes.
func shop() pprofile.Profiles {
	return profiletest.New().
		Resource("service.name", "shop", "shop.open", true).
		Scope("profiler", "1.2", "kind", "sampling").SchemaURLs("https://opentelemetry.io/schemas/1.37.0", "").
		Profile("samples", "count").Time(start, 5_000_000_001).Period(10_000_001, "cpu", "nanoseconds").ID([16]byte{1}).
		Payload("jfr", []byte("as it was")).
		Attributes(profiletest.Attr("profiling.instrumentation.source", "continuous")).
		Sample(profiletest.Sample{
			Stack: profiletest.Stack("leaf", "main"), Timestamps: []uint64{start, start + 1},
			TraceID: [16]byte{15: 1}, SpanID: [8]byte{7: 2},
			Attributes: []profiletest.Attribute{
				{Key: "bytes", Value: int64(0), Unit: "By"}, {Key: "empty", Value: ""}, {Key: "thread.id", Value: int64(7)},
				{Key: "list", Value: []any{"b", int64(3), "a"}}, {Key: "thread.stack.truncated", Value: true},
			},
		}).
		Resource("service.name", "cellar").
		Scope("otel.profiling", "0.1.0").
		Profile("allocated_space", "bytes").Time(start+7_000_000, 1).
		Sample(profiletest.Sample{Stack: profiletest.Stack("alloc"), Timestamps: []uint64{start + 7_000_000},
			Values: []int64{0}}).
		Build()
}

// asSent returns profiles as they are restored from records in the format pprof, which lacks ids and payloads, and has
// a scope's name only as an attribute.
func asSent(pd pprofile.Profiles) pprofile.Profiles {
	sent := profiletest.Clone(pd)
	withoutIDs(sent)
	for _, rp := range sent.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				p.SetOriginalPayloadFormat("")
				p.OriginalPayload().FromRaw(nil)
			}
			scope := sp.Scope()
			if scope.Name() == ProfilingName {
				continue
			}
			for key, value := range map[string]string{keyScopeName: scope.Name(), keyScopeVersion: scope.Version()} {
				if value != "" {
					scope.Attributes().PutStr(key, value)
				}
			}
			scope.SetName(ProfilingName)
			scope.SetVersion("")
		}
	}
	return sent
}

// A pprof record has everything of a profile that one of Splunk's agents could have sent, to the nanosecond.
func TestPprofKeepsTimesLabelsAndLinks(t *testing.T) {
	want := shop()
	ld, _ := records(t, want, EncodeOptions{Format: FormatPprof})
	got := translated(t, ld, Options{}).Profiles
	assert.NoError(t, profiletest.Equal(asSent(want), withoutIDs(got)))
	frames := []int64{}
	eachRecord(ld, func(record plog.LogRecord) {
		n, _ := record.Attributes().Get(keyFrameCount)
		frames = append(frames, n.Int())
	})
	assert.Equal(t, []int64{4, 1}, frames)
}

// A function without a name keeps having none on the way through log records, although a record of Splunk's agents with
// one is read as an anonymous function.
func TestFunctionsWithoutAName(t *testing.T) {
	unnamed := profiletest.Stack("leaf", "main")
	unnamed[0].Lines[0].Function = profiletest.Function{File: "a.js"}
	sample := profiletest.Observed([]uint64{start}, "leaf")
	sample.Stack = unnamed
	pd := profiletest.New().Resource("service.name", "shop").Scope(ProfilingName, "").
		Profile("samples", "count").Period(50_000_000, "cpu", "nanoseconds").Time(start, 50_000_000).Sample(sample).Build()
	ld, _ := records(t, pd, EncodeOptions{Format: FormatPprof})
	assert.NoError(t, profiletest.Equal(asSent(pd), withoutIDs(translated(t, ld, Options{}).Profiles)))
	plain := plog.NewLogs()
	ld.CopyTo(plain)
	eachRecord(plain, func(record plog.LogRecord) {
		record.Attributes().RemoveIf(func(key string, _ pcommon.Value) bool { return key == keySampleType })
	})
	got := translated(t, plain, Options{}).Profiles
	assert.Contains(t, profiletest.Render(got), "(anonymous) a.js")
}
