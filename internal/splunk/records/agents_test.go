// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const (
	traceID = "0102030405060708090a0b0c0d0e0f10"
	spanID  = "a1a2a3a4a5a6a7a8"
)

// The shapes that other agents' public sources write.
func TestAgentsGolden(t *testing.T) {
	for name, tc := range map[string]struct {
		pprof      func(p *rawPprof)
		attributes []any
	}{
		// Java: no values, thread labels, locks; sent without a format, from a scope without a version.
		"java-cpu": {attributes: []any{keyType, "cpu", keyFrameCount, 2, keySource, "threaddump"}, pprof: func(p *rawPprof) {
			p.str("")
			p.frame(1, "com.shop.Cart.total", "Cart.java", 12)
			p.frame(2, "java.lang.Thread.run", "unknown", 0)
			p.sample([]uint64{1, 2}, nil, "thread.id", 49, "thread.name", "main", "thread.state", "RUNNABLE",
				"thread.stack.truncated", "true", "source.event.period", 10_000, "source.event.time", int64(1_700_000_000_001),
				"trace_id", traceID, "span_id", spanID, "thread.lock.waiting_on", "java.lang.Object@1f")
			p.sample([]uint64{1, 2}, nil, "source.event.period", 10_000, "source.event.time", int64(1_700_000_000_002))
			p.sample([]uint64{1, 2}, nil, "source.event.period", 10, "source.event.time", int64(1_700_000_000_003))
		}},
		"java-allocation": {attributes: []any{keyType, "allocation", keyFormat, FormatPprof.String()},
			pprof: func(p *rawPprof) {
				p.str("")
				p.sampleType("allocationSize", "bytes")
				p.frame(1, "com.shop.Cart.total", "Cart.java", 12)
				p.sample([]uint64{1}, []int64{4096}, "source.event.name", "jdk.ObjectAllocationSample", "source.event.time",
					int64(1_700_000_000_001))
				p.sample([]uint64{1}, []int64{8}, "source.event.name", "jdk.ObjectAllocationSample", "source.event.time",
					int64(1_700_000_000_002))
			}},
		// .NET: a location of its own for every frame, numbers and bools as text.
		"dotnet-cpu": {attributes: []any{keyType, "cpu", keyFormat, FormatPprof.String(), keySource, "continuous"},
			pprof: func(p *rawPprof) {
				p.str("")
				p.frame(1, "Shop.Cart.Total", "unknown", 0)
				p.frame(2, "Shop.Cart.Total", "unknown", 0)
				p.sample([]uint64{1}, nil, "source.event.period", "1000", "source.event.time", "1700000000001",
					"thread.id", "5", "thread.os.id", "77", "thread.stack.truncated", "True")
				p.sample([]uint64{2}, nil, "source.event.period", "1000", "source.event.time", "1700000000002",
					"thread.id", 5, "thread.os.id", 77, "thread.stack.truncated", "True")
			}},
		// Python: string_table[0] is a label's key, ids have no leading zeros.
		"python-cpu": {attributes: []any{keyType, "cpu", keyFormat, FormatPprof.String(), keyFrameCount, 1},
			pprof: func(p *rawPprof) {
				p.str("source.event.time")
				p.frame(1, "total", "/srv/shop/cart.py", -1)
				p.sample([]uint64{1}, nil, "source.event.time", int64(1_700_000_000_001), "source.event.period", 1000, "thread.id",
					int64(140592751362048), "trace_id", "1f", "span_id", "2e")
				p.sample([]uint64{1}, nil, "source.event.time", int64(1_700_000_000_002), "source.event.period", 1000, "trace_id",
					"0", "span_id", "0")
			}},
		// None of them: what the labels of a pprof can say beside.
		"odd-labels": {attributes: []any{keyType, "cpu", keyTruncated, "x", keyEventPeriod, 20}, pprof: func(p *rawPprof) {
			p.str("")
			p.frame(1, "f", "", 0)
			p.sample([]uint64{1}, []int64{1}, "source.event.time", "soon", "many", "b", "many", 3, "many", "a", "trace_id",
				traceID)
			p.sample([]uint64{1}, []int64{1}, "source.event.time", -1, "source.event.period", "often", "span_id", spanID)
			p.sample([]uint64{1}, []int64{7}, "thread.id", "main", "trace_id", traceID, "trace_id", traceID)
			p.sample(nil, nil, "source.event.time", int64(1_700_000_000_002))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &rawPprof{}
			tc.pprof(p)
			ld, record := newRecord(p.encode(), tc.attributes...)
			record.SetTimestamp(1_700_000_000_000_000_000)
			result := translated(t, ld, Options{})
			profiletest.Golden(t, filepath.Join("testdata", "golden", name+".txt"), profiletest.Render(result.Profiles))
		})
	}
}

func TestDotnetFramesBecomeOneLocation(t *testing.T) {
	p := &rawPprof{}
	p.str("")
	for id := range uint64(100) {
		p.frame(id+1, "Shop.Cart.Total", "unknown", 0)
		p.sample([]uint64{id + 1}, nil, "source.event.time", int64(1_700_000_000_000)+int64(id))
	}
	ld, _ := newRecord(p.encode(), keyType, "cpu")
	pd := translated(t, ld, Options{}).Profiles
	assert.Equal(t, 2, pd.Dictionary().LocationTable().Len())
	assert.Equal(t, 100, pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0).
		TimestampsUnixNano().Len())
}

// Samples of one stack and several spans stay apart, in a pprof and in text.
func TestLinksTellSamplesApart(t *testing.T) {
	const spans = 3
	p := &rawPprof{}
	p.str("")
	p.frame(1, "f", "", 0)
	for i := range 2 * spans {
		p.sample([]uint64{1}, nil, keyEventTime, 1000, KeyTraceID, traceID, KeySpanID, fmt.Sprintf("%016x", i/2+1))
	}
	ld, _ := newRecord(p.encode(), keyType, "cpu")
	lines := plog.NewLogs()
	scope := lines.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	scope.Scope().SetName(ProfilingName)
	for i := range 2 * spans {
		record := appendRecord(scope, "\n\nat f()", keyFormat, "text")
		record.SetTimestamp(1000)
		record.SetTraceID([16]byte{1})
		record.SetSpanID([8]byte{byte(i/2 + 1)})
	}
	for _, ld := range []plog.Logs{ld, lines} {
		pd := translated(t, ld, Options{}).Profiles
		samples := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples()
		assert.Equal(t, spans, samples.Len())
		for i, s := range samples.All() {
			assert.EqualValues(t, i+1, s.LinkIndex())
			assert.Equal(t, 2, s.TimestampsUnixNano().Len())
		}
	}
}

// Bodies in other clothes than the specification's are the same profile.
func TestBodiesAsOtherSendersWriteThem(t *testing.T) {
	original := captured(t)["v4.11.0-003-allocation-continuous"]
	want := withoutIDs(Translate(original, Options{}).Profiles)
	payload, err := base64.StdEncoding.DecodeString(onlyRecord(original).Body().Str())
	require.NoError(t, err)
	for name, change := range map[string]func(body string) any{
		"no padding":   func(b string) any { return strings.TrimRight(b, "=") },
		"line breaks":  func(b string) any { return b[:76] + "\r\n" + b[76:] + "\n" },
		"url alphabet": func(b string) any { return strings.NewReplacer("+", "-", "/", "_").Replace(b) },
		"raw bytes":    func(string) any { return payload },
		"base64 bytes": func(b string) any { return []byte(b) },
	} {
		t.Run(name, func(t *testing.T) {
			ld := captured(t)["v4.11.0-003-allocation-continuous"]
			body := onlyRecord(ld).Body()
			require.NoError(t, body.FromRaw(change(body.Str())))
			assert.NoError(t, profiletest.Equal(want, withoutIDs(translated(t, ld, Options{}).Profiles)))
		})
	}
}

// withoutIDs removes the profile ids, which are hashes of the bodies as sent.
func withoutIDs(pd pprofile.Profiles) pprofile.Profiles {
	for p := range otlp.Profiles(pd) {
		p.SetProfileID(pprofile.ProfileID{})
	}
	return pd
}
