// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package formats_test

import (
	"context"
	"encoding/base64"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats"
	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/events"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/layouts"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	pprofdecode "github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/hec"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// decoder is a way in which the product decodes bytes, and captured payloads for it.
type decoder struct {
	files      []string // globs
	isProtobuf bool
	// text is a payload that is not captured.
	text string
	// prepare makes other payloads of a captured one, if it is set.
	prepare func(t *testing.T, payload []byte) [][]byte
	decode  func(ctx context.Context, data []byte) error
}

// largestPlain is the size of the largest captured payload that is used.
const largestPlain = 512 << 10

// payloads returns the captured payloads by name, decompressed.
func (d *decoder) payloads(t *testing.T) map[string][]byte {
	t.Helper()
	payloads := map[string][]byte{}
	if d.text != "" {
		payloads["text"] = []byte(d.text)
	}
	for _, glob := range d.files {
		paths := profiletest.Glob(t, glob)
		for _, path := range paths {
			data := profiletest.FileBytes(t, path)
			plain, err := pprofdecode.Uncompress(data, 64<<20, nil)
			require.NoError(t, err)
			if len(plain) > largestPlain {
				continue
			}
			prepared := [][]byte{plain}
			if d.prepare != nil {
				prepared = d.prepare(t, plain)
			}
			for _, payload := range prepared {
				name := filepath.Base(path)
				for payloads[name] != nil {
					name += "+"
				}
				payloads[name] = payload
			}
		}
	}
	return payloads
}

// other decodes one of the formats of this package.
func other(format formats.Format, files ...string) decoder {
	return decoder{files: files, decode: func(ctx context.Context, data []byte) error {
		pd, _, err := formats.Decode(data, format,
			formats.Options{Options: events.Options{Anchor: events.Anchor{EndNanos: 1795297434e9}, Meter: meterOf(ctx)}})
		return conformant(pd, err)
	}}
}

func conformant(pd pprofile.Profiles, err error) error {
	if err == nil {
		if fault := profiletest.Check(pd); fault != nil {
			panic(fault)
		}
	}
	return err
}

// meterOf ends a decoder with a context.
func meterOf(ctx context.Context) *size.Meter { return &size.Meter{Context: ctx} }

func decodePprof(ctx context.Context, data []byte) error {
	pd, _, err := pprofdecode.Decode(data,
		pprofdecode.Options{TimestampLabels: pprofdecode.DefaultTimestampLabels(), Meter: meterOf(ctx)})
	return conformant(pd, err)
}

// decodeTotals decodes a pprof of totals against itself without its last byte, which both decode or neither does.
func decodeTotals(ctx context.Context, data []byte) error {
	baseline := pprofdecode.NewBaseline(0)
	if _, _, err := pprofdecode.Decode(data[:len(data)-min(len(data), 1)],
		pprofdecode.Options{Baseline: baseline, Meter: meterOf(ctx)}); err == nil {
		baseline.Commit()
	}
	pd, _, err := pprofdecode.Decode(data, pprofdecode.Options{Baseline: baseline, Meter: meterOf(ctx)})
	return conformant(pd, err)
}

func decodeOTLP(ctx context.Context, data []byte) error {
	_, _, err := layouts.Unmarshal(data, meterOf(ctx))
	return err
}

func decodeOTLPJSON(ctx context.Context, data []byte) error {
	_, _, err := layouts.UnmarshalJSON(data, meterOf(ctx))
	return err
}

// decodeLogs decodes a request of log records as the receiver of Splunk's agents does.
func decodeLogs(ctx context.Context, data []byte) error {
	if _, err := size.Logs(data); err != nil {
		return err
	}
	ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(data)
	if err != nil {
		return err
	}
	return translate(ctx, ld)
}

func translate(ctx context.Context, ld plog.Logs) error {
	result := records.Translate(ld, records.Options{Meter: meterOf(ctx)})
	return conformant(result.Profiles, result.Err)
}

func decodeHEC(ctx context.Context, data []byte) error {
	if _, err := size.JSON(data); err != nil {
		return err
	}
	var reader hec.Reader
	ld, fault := reader.Read(data)
	if fault != nil {
		return errors.New(fault.Reason)
	}
	return translate(ctx, ld)
}

// decodeRecord decodes a pprof that is the body of one of Splunk's records.
func decodeRecord(ctx context.Context, data []byte) error {
	ld, record := newRecord("pprof-gzip-base64")
	record.Attributes().PutStr("profiling.data.type", "cpu")
	record.Body().SetStr(base64.StdEncoding.EncodeToString(data))
	return translate(ctx, ld)
}

// decodeStack decodes a text that is the body of one of Splunk's records.
func decodeStack(ctx context.Context, data []byte) error {
	ld, record := newRecord("text")
	record.Attributes().PutStr("profiling.data.type", "cpu")
	record.Body().SetStr(string(data))
	return translate(ctx, ld)
}

// decodeBody decodes OTLP profiles that are the body of a record, which profiles_to_logs writes.
func decodeBody(ctx context.Context, data []byte) error {
	ld, record := newRecord("otlp")
	record.Body().SetEmptyBytes().FromRaw(data)
	return translate(ctx, ld)
}

func newRecord(format string) (plog.Logs, plog.LogRecord) {
	ld := plog.NewLogs()
	sl := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	sl.Scope().SetName(records.ProfilingName)
	record := sl.LogRecords().AppendEmpty()
	record.Attributes().PutStr("com.splunk.sourcetype", records.ProfilingName)
	record.Attributes().PutStr("profiling.data.format", format)
	return ld, record
}

// stack is a text as Splunk's Java agent sends it.
const stack = `"worker-1" #12 prio=5 os_prio=0 cpu=12.5ms elapsed=3.1s tid=0x00007f2f8c00a000 nid=0x1b4 runnable
   java.lang.Thread.State: RUNNABLE
	at java.lang.Math.sqrt(java.base@17.0.2/Native Method)
	at com.example.Shop.price(Shop.java:42)
	at com.example.Shop.checkout(Shop.java:17)
	at java.lang.Thread.run(Thread.java:833)
`

// chrome is a profile as Chrome's trace events, in which a node names its parent.
const chrome = `[{"name":"Profile","ph":"P","ts":1,"id":"0x1","pid":7,"tid":8,"args":{"data":{"startTime":5000}}},
{"name":"ProfileChunk","ph":"P","ts":2,"id":"0x1","pid":7,"tid":9,"args":{"data":{"timeDeltas":[10,20,30],"cpuProfile":{"nodes":[
{"id":1,"callFrame":{"functionName":"(root)","url":"","lineNumber":-1}},
{"id":2,"parent":1,"callFrame":{"functionName":"(idle)","url":"","lineNumber":-1}},
{"id":3,"parent":1,"callFrame":{"functionName":"main","url":"shop.js","lineNumber":3,"columnNumber":1}},
{"id":4,"parent":3,"callFrame":{"functionName":"work","url":"shop.js","lineNumber":9,"columnNumber":2}}],
"samples":[4,2,3]}}}}]
`

// bodiesOf returns the pprofs in a request of Splunk's records, decompressed.
func bodiesOf(t *testing.T, request []byte) (bodies [][]byte) {
	t.Helper()
	for _, rl := range logsOf(t, request).ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				body, err := base64.StdEncoding.DecodeString(record.Body().Str())
				require.NoError(t, err)
				plain, err := pprofdecode.Uncompress(body, 64<<20, nil)
				require.NoError(t, err)
				bodies = append(bodies, plain)
			}
		}
	}
	return bodies
}

func logsOf(t *testing.T, request []byte) plog.Logs {
	t.Helper()
	ld, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(request)
	require.NoError(t, err)
	return ld
}

// eventsOf returns a request of Splunk's records as HEC's events.
func eventsOf(t *testing.T, request []byte) [][]byte {
	t.Helper()
	body, _, err := hec.Write(logsOf(t, request), 0)
	require.NoError(t, err)
	return [][]byte{body}
}

const (
	pprofFolder  = "../../testdata/pprof/"
	splunkFiles  = "../../testdata/splunk/*.otlp-logs.pb"
	layoutFolder = "../otlp/layouts/testdata/"
)

func decoders() map[string]decoder {
	return map[string]decoder{
		"pprof": {files: []string{pprofFolder + "go-[bcghmt]*.pb.gz", pprofFolder + "[cn]*.pb.gz"}, isProtobuf: true,
			decode: decodePprof},
		"totals": {files: []string{pprofFolder + "go-[abm]*[klx].pb.gz", pprofFolder + "go-allocs.pb.gz"}, isProtobuf: true,
			decode: decodeTotals},
		"V8":          other(formats.CPUProfile, "cpuprofile/testdata/*.cpuprofile"),
		"Chrome":      {text: chrome, decode: other(formats.TraceEvents).decode},
		"Go trace":    other(formats.GoTrace, "gotrace/testdata/*.trace.gz"),
		"JFR":         other(formats.JFR, "jfr/testdata/*.jfr.gz"),
		"perf script": other(formats.PerfScript, "perfscript/testdata/*.perf.txt"),
		"speedscope":  other(formats.Speedscope, "speedscope/testdata/*.json"),
		"Firefox":     other(formats.Firefox, "firefox/testdata/*.json"),
		"folded":      other(formats.Folded, "jfr/testdata/*.collapsed.gz"),
		"OTLP": {files: []string{layoutFolder + "*.pb", layoutFolder + "async-profiler/*.otlp"}, isProtobuf: true,
			decode: decodeOTLP},
		"OTLP JSON":    {files: []string{layoutFolder + "*.json"}, decode: decodeOTLPJSON},
		"Splunk":       {files: []string{splunkFiles}, isProtobuf: true, decode: decodeLogs},
		"Splunk pprof": {files: []string{splunkFiles}, prepare: bodiesOf, isProtobuf: true, decode: decodeRecord},
		"Splunk text":  {text: stack, decode: decodeStack},
		"Splunk OTLP":  {files: []string{layoutFolder + "145.pb"}, isProtobuf: true, decode: decodeBody},
		"HEC":          {files: []string{splunkFiles}, prepare: eventsOf, decode: decodeHEC},
	}
}

// TestMutants decodes damaged copies of captured payloads: each decoder ends.
func TestMutants(t *testing.T) {
	for name, d := range decoders() {
		for file, payload := range d.payloads(t) {
			t.Run(name+"/"+file, func(t *testing.T) {
				profiletest.Mutation{Payload: payload, IsProtobuf: d.isProtobuf, Decode: d.decode}.Run(t)
			})
		}
	}
}

// TestDecodersEndWithTheirContext decodes whole payloads after the context has ended.
func TestDecodersEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, d := range decoders() {
		for file, payload := range d.payloads(t) {
			require.ErrorIs(t, d.decode(ctx, slices.Clone(payload)), context.Canceled, "%s/%s", name, file)
		}
	}
}
