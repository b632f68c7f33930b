// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor"
)

// use is a way to use pools.
type use struct {
	name string
	// pools are the variables and fields that it uses, by their folder.
	pools []string
	kinds []string
	do    func(r *request) (output string)
	// hidden is the sender of uses whose output does not name it.
	hidden string
	// buffers is how often a request of longBytes fits into the buffers that are kept on purpose, which are bounded.
	buffers int
}

var uses = []*use{
	{
		name: "splunk records",
		pools: []string{"internal/splunk/records/translators", "internal/pprof/decode/workers",
			"internal/pprof/decode/decompressors"},
		kinds: []string{"pprof", "text", "otlp", "otlp, gzip", "otlp, plain", "all", "not base64", "truncated pprof",
			"truncated otlp"},
		do: translateRecords, buffers: scan.MaxKeptBytes / longBytes,
	},
	{
		name: "pprof to OTLP",
		pools: []string{"internal/pprof/decode/workers", "internal/pprof/decode/decompressors",
			"internal/pprof/decode/snapshots"},
		kinds: []string{"plain", "gzip", "zstd", "truncated", "baseline", "timestamps", "original payload"},
		do:    decodePprof, buffers: 6,
	},
	{
		name:  "uncompress",
		pools: []string{"internal/pprof/decode/decompressors"},
		kinds: []string{"gzip", "zstd"},
		do: func(r *request) string {
			plain, err := decode.Uncompress(compress(r.kind, []byte(r.sender)), 1<<30, r.meter())
			return fmt.Sprint(string(plain), err, string(decode.Head(compress(r.kind, []byte(r.sender)), 64)))
		}, buffers: 3,
	},
	{
		name:  "OTLP to pprof",
		pools: []string{"internal/pprof/encode/encoders", "internal/pprof/encode/compressors"},
		kinds: []string{"sound", "bad attribute", "bad stack", "bad value"},
		do:    encodePprof, buffers: 3,
	},
	{
		name:  "merge",
		pools: []string{"internal/otlp/compact/batches"},
		kinds: []string{"added", "consumed", "read-only", "not sent", "bad attribute", "bad stack", "divided"},
		do:    merge,
	},
	{
		name: "bodies",
		pools: []string{"internal/service/httpserver/zstdDecoders", "internal/service/httpserver/lz4Readers",
			"internal/service/budget/buffers"},
		kinds: []string{"", "gzip", "zstd", "lz4", "snappy", "x-snappy-framed"},
		do:    readBody, buffers: 3,
	},
	{
		name:  "process_resource",
		pools: []string{"processor/processresourceprocessor/spare"},
		kinds: []string{"sound", "bad attribute", "bad stack"},
		do:    processResource,
	},
	{
		// Its series add up what all senders send.
		name:  "profile_metrics",
		pools: []string{"connector/profilemetricsconnector/reducers"},
		kinds: []string{"sound", "bad attribute", "bad stack"},
		do: func(r *request) string {
			require.NoError(r, metricsConnector().ConsumeProfiles(r.context(), broken(r.kind, r.sender)))
			return ""
		}, hidden: shop,
	},
}

// profilesOf are profiles in which everything that has a name has the sender's.
func profilesOf(sender string) *pt.Builder {
	return pt.New().Resource("service.name", sender).Scope(sender, "1", sender, sender).Profile("cpu", "nanoseconds").
		Time(1000, 10).
		Period(1, "cpu", "nanoseconds").Attributes(pt.Attr("pprof.profile.comment", []any{sender})).
		Sample(pt.Value(7, "main", sender).With(pt.Attr("thread.name", sender)), pt.Value(8, sender), pt.Value(9, "idle"))
}

// broken breaks profiles as a kind says.
func broken(kind, sender string) pprofile.Profiles {
	b := profilesOf(sender)
	switch kind {
	case "bad attribute":
		b.Break(func(pd pprofile.Profiles) { pt.SampleAt(pd, 2).AttributeIndices().Append(1 << 20) })
	case "bad stack":
		b.Break(func(pd pprofile.Profiles) { pt.SampleAt(pd, 2).SetStackIndex(1 << 20) })
	case "bad value":
		b.Break(func(pd pprofile.Profiles) { pt.SampleAt(pd, 2).Values().Append(1, 2, 3) })
	}
	return b.Build()
}

func pprofOf(sender, sampleType string, value int64) []byte {
	number := func(key, num int64) pt.PprofLabel { return pt.PprofLabel{Key: key, Num: num} }
	return pt.PprofWire(nil).Strings("", sampleType, "nanoseconds", sender, "end_timestamp_ns", "n").
		ValueType(pt.PprofSampleType, 1, 2).
		Function(pt.PprofFunctionFields{ID: 1, Name: 3}).
		Location(pt.PprofLocationFields{ID: 1, Lines: []pt.PprofLine{{Function: 1}}}).
		Message(pt.PprofSample,
			pt.PprofWire(nil).Packed(pt.PprofSampleLocation, 1).Packed(pt.PprofSampleValue, uint64(value)).
				Label(pt.PprofLabel{Key: 3, Str: 3}).Label(number(4, 1000))).
		Message(pt.PprofSample,
			pt.PprofWire(nil).Packed(pt.PprofSampleValue, uint64(value)).Label(pt.PprofLabel{Key: 5, Num: 7, Unit: 3}))
}

var zstdWriter, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<16))

func compress(encoding string, plain []byte) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	switch encoding {
	case "gzip":
		w, _ = gzip.NewWriterLevel(&out, gzip.NoCompression)
	case "zstd":
		zstdWriter.Reset(&out)
		w = zstdWriter
	case "lz4":
		w = lz4.NewWriter(&out)
	case "x-snappy-framed":
		w = s2.NewWriter(&out, s2.WriterSnappyCompat(), s2.WriterConcurrency(1))
	case "snappy":
		return s2.EncodeSnappy(nil, plain)
	default:
		return plain
	}
	_, _ = w.Write(plain) // to a buffer
	_ = w.Close()
	return out.Bytes()
}

func textOf(r *request, pd pprofile.Profiles) string {
	if pd == (pprofile.Profiles{}) || len(r.sender) > longBytes/2 { // the library of the marshaler has pools, too
		return ""
	}
	text, err := new(pprofile.JSONMarshaler).MarshalProfiles(pd)
	require.NoError(r, err)
	return string(text)
}

// translateRecords translates two records of a kind, or one of each.
func translateRecords(r *request) string {
	ld := plog.NewLogs()
	scope := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	// Attributes that all records share must not pile up in what is kept of them.
	shared := strings.Repeat("x", 4<<10)
	ld.ResourceLogs().At(0).Resource().Attributes().PutStr("service.name", r.sender)
	ld.ResourceLogs().At(0).Resource().Attributes().PutStr("shared", shared)
	scope.Scope().SetName(records.ProfilingName)
	add := func(format string, body []byte) {
		record := scope.LogRecords().AppendEmpty()
		record.Attributes().PutStr("profiling.data.format", format)
		record.Attributes().PutStr("profiling.data.type", "cpu")
		record.Attributes().PutStr("extra", r.sender)
		record.Attributes().PutStr("shared", shared)
		if format == "otlp" {
			record.Body().SetEmptyBytes().FromRaw(body)
			return
		}
		record.Body().SetStr(string(body))
	}
	otlp := pt.Marshal(r, profilesOf(r.sender).Build())
	base64Of := func(body []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(body)) }
	pprof := compress("gzip", pprofOf(r.sender, "cpu", 1))
	kinds := map[string]func(){
		"pprof": func() { add("pprof-gzip-base64", base64Of(pprof)) },
		"text": func() {
			add("text", fmt.Appendf(nil, "%q #1 nid=0x1\n\tstate\n\tat %s(x.go:1)\n", r.sender, r.sender))
		},
		"otlp":            func() { add("otlp", compress("zstd", otlp)) },
		"otlp, gzip":      func() { add("otlp", compress("gzip", otlp)) },
		"otlp, plain":     func() { add("otlp", otlp) },
		"not base64":      func() { add("pprof-gzip-base64", []byte("%"+r.sender)) },
		"truncated pprof": func() { add("pprof-gzip-base64", base64Of(pprof[:len(pprof)-9])) },
		"truncated otlp":  func() { add("otlp", otlp[:len(otlp)-9]) },
	}
	for range 2 {
		if r.kind != "all" {
			kinds[r.kind]()
			continue
		}
		for _, kind := range []string{"text", "otlp", "pprof", "otlp, gzip", "truncated pprof", "otlp, plain", "not base64",
			"truncated otlp"} {
			kinds[kind]()
		}
	}
	result := records.Translate(ld, records.Options{Meter: r.meter()})
	return fmt.Sprintln(textOf(r, result.Profiles), result.Err, result.Rejected, result.Samples,
		ld.ResourceLogs().At(0).Resource().Attributes().AsRaw())
}

func decodePprof(r *request) string {
	options := decode.Options{Meter: r.meter()}
	payload := pprofOf(r.sender, "cpu", 1)
	switch r.kind {
	case "gzip", "zstd":
		payload = compress(r.kind, payload)
	case "truncated":
		payload = payload[:len(payload)-1]
	case "timestamps":
		options.TimestampLabels = decode.DefaultTimestampLabels()
	case "original payload":
		options.IncludeOriginalPayload = true
	case "baseline":
		options.Baseline = decode.NewBaseline(0)
		first, _, err := decode.Decode(pprofOf(r.sender, "alloc_space", 1), options)
		if err != nil {
			options.Baseline.Discard()
			return err.Error()
		}
		options.Baseline.Commit()
		options.Meter = r.meter()
		second, stats, err := decode.Decode(pprofOf(r.sender, "alloc_space", 5), options)
		options.Baseline.Discard()
		return fmt.Sprintln(textOf(r, first), textOf(r, second), stats.Samples, stats.Counts, err)
	}
	pd, stats, err := decode.Decode(payload, options)
	return fmt.Sprintln(textOf(r, pd), stats.Samples, stats.Counts, err, r.sender)
}

func encodePprof(r *request) string {
	payloads, stats, err := encode.Encode(broken(r.kind, r.sender))
	var out strings.Builder
	for _, p := range payloads {
		out.Write(p.Bytes)
		plain, err := gzip.NewReader(bytes.NewReader(encode.Gzip(p.Bytes)))
		require.NoError(r, err)
		_, err = io.Copy(&out, plain)
		require.NoError(r, err)
	}
	return fmt.Sprintln(out.String(), stats, err, r.sender)
}

var batches compact.Pool

func merge(r *request) string {
	options := compact.Options{CombineSamples: true, OrderByFrequency: true}
	if r.kind == "divided" {
		options.MaxBytes = 256
	}
	b := batches.Get(options)
	defer batches.Put(b)
	for range 2 {
		switch pd := broken(r.kind, r.sender); r.kind {
		case "consumed":
			b.Consume(pd)
		case "read-only":
			pd.MarkReadOnly()
			b.Consume(pd)
		default:
			b.Add(pd)
		}
		if r.end.look() != nil {
			return ""
		}
	}
	var out strings.Builder
	if r.kind == "not sent" {
		return r.sender
	}
	for part := range b.Parts() {
		if r.end.look() != nil {
			break
		}
		out.WriteString(textOf(r, part.Profiles))
	}
	return fmt.Sprintln(out.String(), b.Stats())
}

var bodies = sync.OnceValue(func() *budget.Budget { return budget.New(1 << 30) })

// regrouping is one process_resource. Its next component is that of the request in hand.
var regrouping = sync.OnceValue(func() xconsumer.Profiles {
	factory := processresourceprocessor.NewFactory()
	config := factory.CreateDefaultConfig().(*processresourceprocessor.Config)
	config.Proc.Enabled = false
	next, err := xconsumer.NewProfiles(func(_ context.Context, pd pprofile.Profiles) error { return afterRegrouping(pd) })
	if err != nil {
		panic(err)
	}
	p, err := factory.(xprocessor.Factory).CreateProfiles(context.Background(),
		processortest.NewNopSettings(factory.Type()), config, next)
	if err != nil {
		panic(err)
	}
	return p
})

var afterRegrouping func(pprofile.Profiles) error

func processResource(r *request) (output string) {
	afterRegrouping = func(pd pprofile.Profiles) error {
		output = textOf(r, pd)
		return r.end.look()
	}
	defer func() { afterRegrouping = nil }()
	err := regrouping().ConsumeProfiles(r.context(), broken(r.kind, r.sender))
	return fmt.Sprintln(output, err)
}

var metricsConnector = sync.OnceValue(func() xconsumer.Profiles {
	factory := profilemetricsconnector.NewFactory()
	set := connectortest.NewNopSettings(factory.Type())
	c, err := factory.(xconnector.Factory).CreateProfilesToMetrics(context.Background(), set,
		factory.CreateDefaultConfig(), consumertest.NewNop())
	if err != nil {
		panic(err)
	}
	return c
})

// lookingReader reads a few bytes at a time, and looks before each.
type lookingReader struct {
	io.Reader
	end *end
}

func (l lookingReader) Read(p []byte) (int, error) {
	if err := l.end.look(); err != nil {
		return 0, err
	}
	return l.Reader.Read(p[:min(len(p), 64<<10)])
}

func readBody(r *request) string {
	body := lookingReader{bytes.NewReader(compress(r.kind, []byte(r.sender))), r.end}
	in := httptest.NewRequest(http.MethodPost, "/", body).WithContext(r.context())
	in.ContentLength = -1
	in.Header.Set("Content-Encoding", r.kind)
	reservation := bodies().Begin()
	defer reservation.Release()
	opened, err := httpserver.OpenBody(httptest.NewRecorder(), in, httpserver.BodyOptions{
		Reservation: reservation, LimitBytes: 64 << 20, Encodings: httpserver.Encodings,
	})
	if err != nil {
		return err.Error()
	}
	data, err := opened.ReadAll()
	return fmt.Sprint(string(data), err)
}
