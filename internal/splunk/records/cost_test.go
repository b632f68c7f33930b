// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata"

	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// The bounds of docs/limits.md: heap <= constant + factor × bytes, decompressed.
const (
	translateConstantBytes = 16 << 20
	translateFactor        = 64
)

// worstPprof is a pprof in which samples and labels refer to few texts.
func worstPprof(texts []string, messages ...[]byte) []byte {
	var b bytes.Buffer
	for _, text := range append([]string{""}, texts...) {
		b.Write(message(6, []byte(text)))
	}
	for _, m := range messages {
		b.Write(m)
	}
	return b.Bytes()
}

func textLabelMessage(key, text int) []byte {
	return message(3, append(varintField(1, uint64(key)), varintField(2, uint64(text))...))
}

func repeated(n int, of func(i int) []byte) (out []byte) {
	for i := range n {
		out = append(out, of(i)...)
	}
	return out
}

func numbered(n int, of func(i int) string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = of(i)
	}
	return out
}

// worstPprofs are payloads that cost most for their size, before compression.
func worstPprofs() map[string][]byte {
	const long = 128 << 10
	keys := numbered(4000, func(i int) string { return "k" + strconv.Itoa(i) })
	samePrefix := []string{strings.Repeat("p", long) + "a", strings.Repeat("p", long) + "b"}
	sampleOf := func(labels []byte) []byte { return message(2, labels) }
	return map[string][]byte{
		"a long text under many keys": worstPprof(append([]string{strings.Repeat("x", long)}, keys...),
			sampleOf(repeated(len(keys), func(i int) []byte { return textLabelMessage(i+2, 1) }))),
		"a long broken text under many keys": worstPprof(append([]string{strings.Repeat("\xff", long)}, keys...),
			sampleOf(repeated(len(keys), func(i int) []byte { return textLabelMessage(i+2, 1) }))),
		"many values of one key": worstPprof([]string{strings.Repeat("x", long), "k"},
			sampleOf(repeated(4000, func(int) []byte { return textLabelMessage(2, 1) }))),
		"two long texts of one key, in many samples": worstPprof([]string{strings.Repeat("x", long), "k", "y"},
			repeated(20_000, func(i int) []byte {
				return sampleOf(append(append(textLabelMessage(2, 1), textLabelMessage(2, 3)...), message(3, append(varintField(1, 3), varintField(3, uint64(i))...))...))
			})),
		"two long keys of one prefix, in many samples": worstPprof(append(samePrefix, "x"),
			repeated(20_000, func(int) []byte { return sampleOf(append(textLabelMessage(1, 3), textLabelMessage(2, 3)...)) })),
		"long times": worstPprof([]string{keyEventTime, strings.Repeat("1", long), KeyTraceID, KeySpanID, strings.Repeat("0", long)},
			repeated(20_000, func(int) []byte {
				return sampleOf(bytes.Join([][]byte{textLabelMessage(1, 2), textLabelMessage(3, 5), textLabelMessage(4, 5)}, nil))
			})),
		"many keys in one sample": worstPprof(numbered(80_000, func(i int) string { return strconv.Itoa(i) }),
			sampleOf(repeated(80_000, func(i int) []byte { return textLabelMessage(i+1, 1) }))),
		"empty samples": bytes.Repeat(message(2, nil), 1<<19),
		"a key of every sample's own": worstPprof(numbered(20_000, func(i int) string { return strconv.Itoa(i) }),
			repeated(20_000, func(i int) []byte { return sampleOf(textLabelMessage(i+1, 1)) })),
		"long names of functions": worstPprof([]string{strings.Repeat("\xff", long)},
			repeated(20_000, func(i int) []byte {
				return message(5, bytes.Join([][]byte{varintField(1, uint64(i+1)), varintField(2, 1), varintField(3, 1), varintField(4, 1)}, nil))
			}),
			repeated(20_000, func(i int) []byte {
				return message(4, append(varintField(1, uint64(i+1)), message(4, varintField(1, uint64(i+1)))...))
			}),
			repeated(20_000, func(i int) []byte { return sampleOf(varintField(1, uint64(i+1))) })),
	}
}

// requestOfMany is a request of a record for each body.
func requestOfMany(n int, body string, attributes ...any) plog.Logs {
	ld, _ := newRecord(body, attributes...)
	for range n - 1 {
		appendRecord(ld.ResourceLogs().At(0).ScopeLogs().At(0), body, attributes...)
	}
	return ld
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(data)
	_ = z.Close()
	return b.Bytes()
}

// worst is a request and its size, decompressed.
type worst struct {
	logs  plog.Logs
	bytes int
}

func worstRequests(t testing.TB) map[string]worst {
	t.Helper()
	all := map[string]worst{}
	add := func(name string, ld plog.Logs, unpacked int) {
		ld.MarkReadOnly()
		all[name] = worst{ld, unpacked + new(plog.ProtoMarshaler).LogsSize(ld)}
	}
	for name, pprof := range worstPprofs() {
		ld, _ := newRecord(base64.StdEncoding.EncodeToString(gzipped(pprof)), keyFormat, formatPprofValue, keyType, "cpu")
		add("pprof: "+name, ld, len(pprof))
	}
	attributes := func(to plog.LogRecord, n int, value string) {
		var m xpdata.MapBuilder
		for i := range n {
			m.AppendEmpty("attribute" + strconv.Itoa(i)).SetStr(value)
		}
		m.UnsafeIntoMap(to.Attributes())
	}
	for _, body := range []string{javaStack, encoded(worstPprofs()["a key of every sample's own"])} {
		ld, record := newRecord(body)
		attributes(record, 80_000, "x")
		add("80,000 attributes of "+body[:4], ld, 0)
	}
	ld, record := newRecord(javaStack)
	attributes(record, 40_000, "\xff")
	add("40,000 broken attributes", ld, 0)

	// Each sample is of a profile of its own, with all attributes of the record.
	for _, n := range []int{0, 10_000} {
		periods := worstPprof([]string{keyEventPeriod}, repeated(100_000, func(i int) []byte {
			return message(2, message(3, append(varintField(1, 1), varintField(3, uint64(i+1))...)))
		}))
		ld, record := newRecord(base64.StdEncoding.EncodeToString(gzipped(periods)))
		attributes(record, n, "x")
		record.Attributes().PutStr(keyFormat, formatPprofValue)
		record.Attributes().PutStr(keyType, "cpu")
		add(fmt.Sprintf("many periods and %d attributes", n), ld, len(periods))
	}

	add("many empty records", requestOfMany(100_000, ""), 0)
	add("many stacks", requestOfMany(20_000, javaStack), 0)
	deep, _ := newRecord("\n\n" + strings.Repeat("at f(x:1)\n", 1<<17))
	add("a deep text", deep, 0)
	var lines strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&lines, "at %d(x)\n", i)
	}
	add("many lines", requestOfMany(20, lines.String()), 0)
	add("many parentheses", requestOfMany(2, "at "+strings.Repeat("(", 1<<19)+strings.Repeat(")", 1<<19)), 0)
	return all
}

// Any request costs memory and time in proportion to its bytes.
func TestTranslateIsBounded(t *testing.T) {
	for name, request := range worstRequests(t) {
		t.Run(name, func(t *testing.T) {
			var result Result
			var body []byte
			cost := profiletest.MeasureCost(t, func() {
				result = Translate(request.logs, Options{Limits: scan.Limits{MaxStackDepth: 1 << 20}})
				var err error
				body, err = new(pprofile.ProtoMarshaler).MarshalProfiles(result.Profiles)
				require.NoError(t, err)
			})
			body, result = nil, Result{}
			profiletest.MeasureReserved(t, 16<<20, func(reserve func(int) error) {
				result = Translate(request.logs, Options{Limits: scan.Limits{MaxStackDepth: 1 << 20}, Meter: &pdatasize.Meter{Reserve: reserve}})
			})
			t.Logf("%d bytes, %d out: %v", request.bytes, len(body), cost)
			profiletest.RequireBounded(t, cost, request.bytes, translateConstantBytes, translateFactor)
		})
	}
}

// Many bombs in one request cost no more than two.
func TestManyBombsAreBounded(t *testing.T) {
	const limit = 1 << 20
	filler := make([]byte, 8*limit)
	bodies := map[string][]byte{compressionGzip: gzipped(filler), compressionZstd: zstdEncoder.EncodeAll(filler, nil)}
	for compression, body := range bodies {
		ld := requestOfMany(2000, "", keyFormat, formatOTLPValue, keyBodyCompression, compression)
		pprofs := requestOfMany(2000, "", keyFormat, formatPprofValue, keyType, "cpu")
		for _, request := range []plog.Logs{ld, pprofs} {
			eachRecord(request, func(r plog.LogRecord) { r.Body().SetStr(base64.StdEncoding.EncodeToString(body)) })
			size := new(plog.ProtoMarshaler).LogsSize(request)
			var result Result
			cost := profiletest.MeasureCost(t, func() { result = Translate(request, Options{Limits: scan.Limits{MaxProfileBytes: limit}}) })
			t.Logf("%s: %d bytes: %v", compression, size, cost)
			require.Len(t, result.Rejected, 2000)
			for _, r := range result.Rejected {
				require.Equal(t, ReasonTooLarge, r.Reason)
			}
			profiletest.RequireBounded(t, cost, size+2*limit, translateConstantBytes, 8)
		}
	}
}

// Resources of an OTLP body that share a long text cannot become many times its size.
func TestSharedAttributesAreBounded(t *testing.T) {
	attribute := message(1, bytes.Join([][]byte{varintField(3, 1), message(2, varintField(8, 2))}, nil))
	resources := repeated(20_000, func(int) []byte { return message(1, message(1, attribute)) })
	texts := message(2, bytes.Join([][]byte{message(5, nil), message(5, []byte("k")), message(5, bytes.Repeat([]byte("x"), 128<<10))}, nil))
	ld, record := newRecord("", keyFormat, formatOTLPValue)
	record.Body().SetEmptyBytes().FromRaw(append(resources, texts...))
	ld.MarkReadOnly()
	var result Result
	cost := profiletest.MeasureCost(t, func() { result = Translate(ld, Options{}) })
	profiletest.RequireBounded(t, cost, new(plog.ProtoMarshaler).LogsSize(ld), translateConstantBytes, translateFactor)
	require.Len(t, result.Rejected, 1)
	require.Equal(t, ReasonTooLarge, result.Rejected[0].Reason, result.Rejected[0].Err)
}

// Many OTLP bodies may expand no more than one of their size.
func TestSharedAttributesOfManyBodiesAreBounded(t *testing.T) {
	reference := func(key, text int) []byte {
		return message(1, bytes.Join([][]byte{varintField(3, uint64(key)), message(2, varintField(8, uint64(text)))}, nil))
	}
	number := func(n int) []byte {
		return message(1, bytes.Join([][]byte{varintField(3, 3), message(2, varintField(3, uint64(n)))}, nil))
	}
	scope := message(2, message(2, nil)) // of one profile
	for _, long := range []int{1000, 5 << 10} {
		ld := requestOfMany(200, "", keyFormat, formatOTLPValue)
		i := 0
		eachRecord(ld, func(r plog.LogRecord) {
			resources := repeated(240, func(int) []byte {
				i++
				return message(1, append(message(1, append(reference(1, 2), number(i)...)), scope...))
			})
			texts := message(2, bytes.Join([][]byte{message(5, nil), message(5, []byte("k")), message(5, bytes.Repeat([]byte("x"), long)), message(5, []byte("n"))}, nil))
			r.Body().SetEmptyBytes().FromRaw(append(resources, texts...))
		})
		ld.MarkReadOnly()
		size := new(plog.ProtoMarshaler).LogsSize(ld)
		var result Result
		cost := profiletest.MeasureCost(t, func() { result = Translate(ld, Options{}) })
		t.Logf("%d bytes, %d rejected, %d resources: %v", size, len(result.Rejected), result.Profiles.ResourceProfiles().Len(), cost)
		profiletest.RequireBounded(t, cost, size, translateConstantBytes, translateFactor)
	}
}

// FuzzRequestCost reads a request as the receiver does, and bounds the cost.
func FuzzRequestCost(f *testing.F) {
	for _, request := range worstRequests(f) {
		body, err := new(plog.ProtoMarshaler).MarshalLogs(request.logs)
		require.NoError(f, err)
		if len(body) < 64<<10 {
			f.Add(body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		const limit = 1 << 20
		var result Result
		cost := profiletest.MeasureCost(t, func() {
			if _, err := pdatasize.Logs(body); err != nil {
				return
			}
			ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(body)
			if err == nil {
				result = Translate(ld, Options{Limits: scan.Limits{MaxProfileBytes: limit}})
			}
		})
		profiletest.RequireBounded(t, cost, len(body)+2*limit, translateConstantBytes, translateFactor)
		_ = result
	})
}
