// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	profilev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest/pyroscopetest"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// typesOf returns the sample types of a pprof, and the sum of the values of each.
func typesOf(p *profile.Profile) (types []string, sums []int64) {
	sums = make([]int64, len(p.SampleType))
	for _, st := range p.SampleType {
		types = append(types, st.Type+"/"+st.Unit)
	}
	for _, sample := range p.Sample {
		for i, v := range sample.Value {
			sums[i] += v
		}
	}
	return types, sums
}

// An eBPF profiler sends CPU and off-CPU profiles of the same interval in one scope, and a Go trace has no period.
func TestOffCPUStaysApartFromCPU(t *testing.T) {
	pd := pt.New().Resource("service.name", "shop").
		Profile("samples", "count").Period(50, "cpu", "nanoseconds").Sample(pt.Observed([]uint64{7, 8, 9}, "f")).
		Profile("off_cpu", "nanoseconds").
		Sample(pt.Sample{Values: []int64{5, 6}, Timestamps: []uint64{7, 8}, Stack: pt.Stack("g")}).
		Profile("gc_pause", "nanoseconds").Sample(pt.Value(2, "g")).Profile("on_cpu", "nanoseconds").
		Time(1, 1).Sample(pt.Value(3, "g")).Profile("off_cpu", "nanoseconds").Time(1, 1).Sample(pt.Value(4, "g")).Build()
	s := pyroscopetest.New(t)
	require.NoError(t, newTestExporter(t, s, nil).push(t.Context(), pd))
	got := map[string]string{}
	for _, one := range s.Series() {
		types, sums := typesOf(one.Pprof)
		got[fmt.Sprint(one.Labels["__name__"], one.Pprof.TimeNanos)] = fmt.Sprint(types, sums)
	}
	require.Equal(t, map[string]string{
		"process_cpu0": "[samples/count cpu/nanoseconds] [3 150]", "off_cpu0": "[off_cpu/nanoseconds] [11]",
		"gc_pause0": "[gc_pause/nanoseconds] [2]", "process_cpu1": "[on_cpu/nanoseconds cpu/nanoseconds] [3 3]",
		"off_cpu1": "[off_cpu/nanoseconds] [4]",
	}, got)
}

// Pyroscope keeps one profile of a series and time. The samples of a pprof with a time and those without are two
// profiles here, and one again there.
func TestSamplesWithAndWithoutTimesAreOneProfile(t *testing.T) {
	timed := pt.Sample{Values: []int64{5, 6}, Timestamps: []uint64{7, 8}, Stack: pt.Stack("f")}
	for name, tt := range map[string]struct {
		build *pt.Builder
		want  string
	}{
		"wall": {
			pt.New().Profile("wall", "nanoseconds").Sample(timed).
				Profile("wall", "nanoseconds").Sample(pt.Value(20, "f"), pt.Value(30, "g")),
			"wall [wall/nanoseconds] [61] 2",
		},
		"samples of CPU time": {
			pt.New().Profile("samples", "count").Period(10, "cpu", "nanoseconds").Sample(pt.Observed([]uint64{7, 8}, "f")).
				Profile("samples", "count").Period(10, "cpu", "nanoseconds").Sample(pt.Value(3, "f"), pt.Value(4, "g")),
			"process_cpu [samples/count cpu/nanoseconds] [9 90] 2",
		},
		"three": {
			pt.New().Profile("wall", "nanoseconds").Sample(timed).Profile("wall", "nanoseconds").Sample(pt.Value(1, "f")).
				Profile("wall", "nanoseconds").Sample(pt.Value(2, "f")),
			"wall [wall/nanoseconds] [14] 1",
		},
		"none has a time": {
			pt.New().Profile("wall", "nanoseconds").Sample(pt.Value(1, "f")).
				Profile("wall", "nanoseconds").Sample(pt.Value(2, "f")),
			"wall [wall/nanoseconds] [3] 1",
		},
		"several types": {
			pt.New().Scope("", "", "pprof.scope.sample_type_order", []any{"wall", "sample"}).
				Profile("wall", "nanoseconds").Sample(timed).Profile("sample", "count").Sample(pt.Observed([]uint64{7, 8}, "f")).
				Profile("wall", "nanoseconds").Sample(pt.Value(20, "g")).Profile("sample", "count").Sample(pt.Value(1, "g")),
			"process_cpu [wall/nanoseconds sample/count] [31 3] 2",
		},
	} {
		s := pyroscopetest.New(t)
		require.NoError(t, newTestExporter(t, s, nil).push(t.Context(), tt.build.Build()), name)
		require.Len(t, s.Series(), 1, name)
		got := s.Series()[0]
		types, sums := typesOf(got.Pprof)
		assert.Equal(t, tt.want, fmt.Sprint(got.Labels["__name__"], " ", types, " ", sums, " ", len(got.Pprof.Sample)), name)
	}
}

// CPU time in another form is what Grafana asks for, too. States at several times are no sum.
func TestFormsOfCPUTime(t *testing.T) {
	const cpu = "process_cpu cpu/nanoseconds"
	for name, tt := range map[string]struct {
		build *pt.Builder
		want  string
	}{
		"async-profiler's samples": {
			pt.New().Profile("itimer", "count").Period(10, "itimer", "ns").Sample(pt.Value(3, "f")),
			cpu + " 10 [itimer/count cpu/nanoseconds] [3 30]",
		},
		"async-profiler's total": {
			pt.New().Profile("itimer", "ns").Period(10, "itimer", "ns").Sample(pt.Value(31, "f")),
			cpu + " 10 [itimer/nanoseconds cpu/nanoseconds] [31 31]",
		},
		"both": {
			pt.New().Profile("itimer", "count").Period(10, "itimer", "ns").Sample(pt.Value(3, "f")).
				Profile("itimer", "ns").Period(10, "itimer", "ns").Sample(pt.Value(31, "f")),
			cpu + " 10 [itimer/count itimer/nanoseconds cpu/nanoseconds] [3 31 31]",
		},
		"another name of its unit": {
			pt.New().Profile("cpu", "ns").Period(10, "cpu", "ns").Sample(pt.Value(31, "f")),
			cpu + " 10 [cpu/nanoseconds] [31]",
		},
		"milliseconds": {
			pt.New().Profile("samples", "count").Period(10, "cpu", "milliseconds").Sample(pt.Value(3, "f")),
			cpu + " 10000000 [samples/count cpu/nanoseconds] [3 30000000]",
		},
		"cycles, not samples": {
			pt.New().Profile("cycles", "count").Period(10, "cpu", "nanoseconds").Sample(pt.Value(3, "f")),
			cpu + " 10 [cycles/count] [3]",
		},
		"samples of cycles": {
			pt.New().Profile("perf_events", "count").Period(10, "perf_events", "total").Sample(pt.Value(3, "f")),
			"process_cpu perf_events/total 10 [perf_events/count] [3]",
		},
		"states at two times": {
			pt.New().Profile("inuse_space", "bytes").Period(1, "space", "bytes").
				Sample(pt.Sample{Values: []int64{10, 20}, Timestamps: []uint64{7, 8}, Stack: pt.Stack("f")}).
				Sample(pt.Sample{Values: []int64{5}, Timestamps: []uint64{8}, Stack: pt.Stack("g")}),
			"memory space/bytes 1 [inuse_space/bytes] [18]",
		},
	} {
		s := pyroscopetest.New(t)
		require.NoError(t, newTestExporter(t, s, nil).push(t.Context(), tt.build.Build()))
		require.Len(t, s.Series(), 1, name)
		got := s.Series()[0]
		types, sums := typesOf(got.Pprof)
		require.Equal(t, tt.want, fmt.Sprint(got.Labels["__name__"], " ", got.Pprof.PeriodType.Type, "/",
			got.Pprof.PeriodType.Unit, " ", got.Pprof.Period, " ", types, " ", sums), name)
	}
}

// Pyroscope fails if it drops a sample, such as one of zeros, of a pprof without a period type.
func TestEveryPprofHasAPeriodType(t *testing.T) {
	pd := pt.New().Profile("cpu", "nanoseconds").Sample(pt.Value(0, "f"), pt.Value(3, "g")).Build()
	payloads, _, err := newView(pd, createDefaultConfig().(*Config)).encode()
	require.NoError(t, err)
	require.Len(t, payloads, 1)
	var p profilev1.Profile
	require.NoError(t, p.UnmarshalVT(payloads[0].Bytes))
	assert.NotNil(t, p.PeriodType)
}

// CPU time is added only to what is sent. The profiles that come back for a retry do not have it, so nothing is counted
// twice.
func TestRetriesDoNotAddCPUTimeTwice(t *testing.T) {
	const n = 4000
	build := pt.New().Resource("service.name", "shop").Profile("samples", "count").Period(10, "cpu", "nanoseconds").
		Time(1e18, 10e9)
	for i := range n {
		build.Sample(pt.Value(1, fmt.Sprint("leaf", i), "main"))
	}
	s := pyroscopetest.New(t)
	s.Answer(nil, refuse(503, ""))
	e := newTestExporter(t, s, func(c *Config) { c.MaxProfileSamples = 1000 })
	pd := build.Build()
	for range 2 {
		err := e.push(t.Context(), pd)
		var left xconsumererror.Profiles
		if err == nil {
			break
		}
		require.ErrorAs(t, err, &left)
		pd = left.Data()
		require.NotContains(t, sampleTypes(pd), "cpu")
	}
	samples, nanos, times := int64(0), int64(0), map[int64]bool{}
	for _, one := range s.Series() {
		types, sums := typesOf(one.Pprof)
		require.Equal(t, []string{"samples/count", "cpu/nanoseconds"}, types)
		samples, nanos = samples+sums[0], nanos+sums[1]
		assert.False(t, times[one.Pprof.TimeNanos], "a time is there twice")
		times[one.Pprof.TimeNanos] = true
	}
	require.EqualValues(t, n, samples)
	require.EqualValues(t, 10*n, nanos)
}

func sampleTypes(pd pprofile.Profiles) (types []string) {
	for p := range otlp.Profiles(pd) {
		types = append(types, otlp.StringAt(pd.Dictionary(), p.SampleType().TypeStrindex()))
	}
	return types
}

// repeatSample makes n samples of one, each with its own attribute.
func repeatSample(pd pprofile.Profiles, n int) {
	table := pd.Dictionary().AttributeTable()
	pd.Dictionary().StringTable().Append("request")
	key := int32(pd.Dictionary().StringTable().Len() - 1)
	for i := range n {
		sample := pt.SampleAt(pd, 0)
		if i > 0 {
			sample = pt.ProfileAt(pd, 0).Samples().AppendEmpty()
			pt.SampleAt(pd, 0).CopyTo(sample)
		}
		attribute := table.AppendEmpty()
		attribute.SetKeyStrindex(key)
		attribute.Value().SetInt(int64(i))
		sample.AttributeIndices().FromRaw([]int32{int32(table.Len() - 1)})
	}
}

// Samples of OTLP share a stack, which samples of pprof repeat. The server limits the size of the pprof.
func TestSizeOfThePprofDecides(t *testing.T) {
	const n, depth, limit = 3000, 500, 64 << 10
	stack := make([]string, depth)
	for i := range stack {
		stack[i] = fmt.Sprint("f", i)
	}
	build := pt.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Sample(pt.Value(1, stack...)).
		Break(func(pd pprofile.Profiles) { repeatSample(pd, n) })
	s := pyroscopetest.New(t)
	require.NoError(t, newTestExporter(t, s, func(c *Config) { c.MaxProfileBytes = limit }).push(t.Context(),
		build.Build()))
	total := int64(0)
	for _, one := range s.Series() {
		assert.LessOrEqual(t, one.Bytes, limit)
		_, sums := typesOf(one.Pprof)
		total += sums[0]
	}
	require.EqualValues(t, n, total)
	require.Greater(t, len(s.Series()), 10)
}

// The server counts the labels of samples as labels of their series.
func TestLabelsOfSamplesLeaveRoom(t *testing.T) {
	resource := []any{"service.name", "shop"}
	for i := range 40 {
		resource = append(resource, fmt.Sprintf("a%02d", i), "x")
	}
	few, many := pt.Value(1, "f"), pt.Value(1, "g")
	for i := range 40 {
		attribute := pt.Attr(fmt.Sprintf("s%02d", i), "y")
		if i < 3 {
			few = few.With(attribute)
		}
		many = many.With(attribute)
	}
	few = few.With(pt.Attr("bytes", 7)).Linked([16]byte{1}, [8]byte{2})
	for name, tt := range map[string]struct {
		sample               pt.Sample
		ofSeries, ofSample   int
		wantDropped          int64
		wantTrace, wantTexts []string
	}{
		"few":    {few, 27, 3, 16, nil, []string{"s00", "s01", "s02", "span_id"}},
		"many":   {many, 15, 15, 28 + 25, nil, nil},
		"a span": {pt.Value(1, "h").With(pt.Attr(kind.OldSpanLabel, "00000000000000ab")), 30, 1, 13, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := pyroscopetest.New(t)
			telemetry := componenttest.NewTelemetry()
			t.Cleanup(func() { assert.NoError(t, telemetry.Shutdown(context.Background())) })
			e := newTestExporterWith(t, s, settingsOf(telemetry), nil)
			pd := pt.New().Resource(resource...).Profile("cpu", "nanoseconds").Sample(tt.sample).Build()
			require.NoError(t, e.push(t.Context(), pd))
			require.Len(t, s.Series(), 1)
			require.Len(t, s.Series()[0].Labels, tt.ofSeries)
			texts := s.Series()[0].Pprof.Sample[0].Label
			if tt.wantTexts != nil {
				require.Len(t, texts, len(tt.wantTexts))
				for _, key := range tt.wantTexts {
					require.Contains(t, texts, key)
				}
				require.Equal(t, []int64{7}, s.Series()[0].Pprof.Sample[0].NumLabel["bytes"])
			}
			delete(texts, kind.SpanLabel)
			require.Len(t, texts, tt.ofSample)
			require.Equal(t, tt.wantDropped, collectortest.Sum(t, telemetry, "otelcol_exporter_pyroscope_dropped_labels"))
		})
	}
}

// A server refuses a whole profile for a long label, or a hyphen in the name of a type.
func TestWhatServersRefuseIsChanged(t *testing.T) {
	long := strings.Repeat("\u00fc", 2000)
	pd := pt.New().Resource("service.name", long, "command", long).Profile("cache-misses", "count").
		Period(100, "cache-misses", "cpu:count").Sample(pt.Value(1, "f").With(pt.Attr("query", long))).Build()
	s := pyroscopetest.New(t)
	require.NoError(t, newTestExporter(t, s, nil).push(t.Context(), pd))
	require.Len(t, s.Series(), 1)
	got := s.Series()[0]
	require.Equal(t, "cache_misses", got.Pprof.SampleType[0].Type)
	require.Equal(t, "cache_misses", got.Pprof.PeriodType.Type)
	require.Equal(t, "cpu_count", got.Pprof.PeriodType.Unit)
	require.Equal(t, "cache_misses", got.Labels["__name__"])
	for _, text := range []string{got.Labels["service_name"], got.Labels["command"],
		got.Pprof.Sample[0].Label["query"][0]} {
		require.Len(t, text, kind.MaxLabelBytes)
		require.True(t, utf8.ValidString(text))
	}
	require.Len(t, kind.LabelValue(strings.Repeat("x", kind.MaxLabelBytes-1)+"\u00fc"), kind.MaxLabelBytes-1)
}

// A server refuses a whole request for text that is no UTF-8, and a whole profile for a long name.
func TestTextIsMadeAcceptable(t *testing.T) {
	name, bad, good := strings.Repeat("n", maxLabelNameBytes+1), "a\xffb\xfe", "a\ufffdb\ufffd"
	pd := pt.New().Resource("service.name", bad, "command", bad, name, "x").Profile("cpu", "nanoseconds").
		Sample(pt.Value(1, "f").With(pt.Attr("query", bad), pt.Attr(name, "x"))).Build()
	s := pyroscopetest.New(t)
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, telemetry.Shutdown(context.Background())) })
	require.NoError(t, newTestExporterWith(t, s, settingsOf(telemetry), nil).push(t.Context(), pd))
	require.Len(t, s.Series(), 1)
	require.Equal(t, map[string]string{"__name__": "process_cpu", "__delta__": "false", "service_name": good,
		"command": good}, s.Series()[0].Labels)
	require.Equal(t, map[string][]string{"query": {good}}, s.Series()[0].Pprof.Sample[0].Label)
	require.EqualValues(t, 2, collectortest.Sum(t, telemetry, "otelcol_exporter_pyroscope_dropped_labels"))
}

func TestTraceIDs(t *testing.T) {
	pd := pt.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").
		Sample(pt.Value(1, "f").Linked([16]byte{0xab}, [8]byte{0xcd})).Build()
	for keep, want := range map[bool][]string{true: {"ab" + strings.Repeat("0", 30)}, false: nil} {
		s := pyroscopetest.New(t)
		require.NoError(t, newTestExporter(t, s, func(c *Config) { c.Labels.TraceID = keep }).push(t.Context(), pd))
		require.Equal(t, want, s.Series()[0].Pprof.Sample[0].Label["trace_id"])
		require.Equal(t, []string{"cd" + strings.Repeat("0", 14)}, s.Series()[0].Pprof.Sample[0].Label["span_id"])
	}
}

// Samples that cannot be sent are counted, and the rest arrives.
func TestInvalidSamplesAreCounted(t *testing.T) {
	pd := pt.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").
		Sample(pt.Value(1, "f"), pt.Value(2, "g")).Build()
	pt.SampleAt(pd, 1).SetStackIndex(math.MaxInt32)
	pt.SampleAt(pd, 0).AttributeIndices().Append(-1, 1<<30)
	pt.SampleAt(pd, 0).SetLinkIndex(-5)
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, telemetry.Shutdown(context.Background())) })
	s := pyroscopetest.New(t)
	require.NoError(t, newTestExporterWith(t, s, settingsOf(telemetry), nil).push(t.Context(), pd))
	require.Len(t, s.Series(), 1)
	_, sums := typesOf(s.Series()[0].Pprof)
	require.Equal(t, []int64{1}, sums)
	require.EqualValues(t, 1, collectortest.Sum(t, telemetry, "otelcol_exporter_pyroscope_dropped_samples", "reason",
		droppedInvalid))
}

// If all series of a message are refused, the error has a bounded size.
func TestErrorsAreBounded(t *testing.T) {
	build, s := pt.New(), pyroscopetest.New(t)
	for i := range 200 {
		build.Resource("service.name", fmt.Sprint("s", i)).Profile("cpu", "nanoseconds").Sample(pt.Value(1, "f"))
		s.Answer(refuse(400, fmt.Sprint(i, strings.Repeat(" no", 5000))))
	}
	err := newTestExporter(t, s, nil).push(t.Context(), build.Build())
	require.ErrorContains(t, err, "; 197 series for other reasons")
	require.Less(t, len(err.Error()), 8<<10)
	require.Equal(t, 200, s.Calls())
}

func TestProductsSaturate(t *testing.T) {
	require.EqualValues(t, 6, otlp.SaturatingMultiply[int64](2, 3))
	require.EqualValues(t, math.MaxInt64, otlp.SaturatingMultiply[int64](math.MaxInt64/2, 3))
}

// The cost of a message is bounded by its size, even if its samples share large entries.
func TestCostIsBounded(t *testing.T) {
	for name, wire := range worst.Profiles.All(256 << 10) {
		t.Run(name, func(t *testing.T) {
			pd, sent := pt.Unmarshal(t, wire), &countingTransport{}
			bound := pt.BoundOf(len(wire), 64<<20, 200)
			bound.CPU *= 2 // of pprofs of up to 64 times the message, and their compression
			bound.AllocatedBytes = 2000 * len(wire)
			pt.RequireCostOfEach(t, bound, func() func() {
				e := newTestExporter(t, pyroscopetest.New(t), nil)
				*sent = countingTransport{}
				e.client.HTTP.Transport = sent
				return func() { _ = e.push(t.Context(), pd) }
			})
			require.Less(t, sent.bytes, minBytes+2*maxExpansion*len(wire))
		})
	}
}

// countingTransport accepts every request.
type countingTransport struct{ requests, bytes int }

func (c *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	n, err := io.Copy(io.Discard, r.Body)
	c.requests, c.bytes = c.requests+1, c.bytes+int(n)
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Body: http.NoBody, Request: r}, err
}

// What the labels of a message's series repeat of it is bounded, and what does not fit is counted.
func TestLabelsAreBoundedByTheMessage(t *testing.T) {
	var long []any
	for i := range 25 {
		long = append(long, fmt.Sprint("a", i), strings.Repeat("x", 2000))
	}
	build, n := pt.New().Resource(long...), 3000
	for i := range n {
		build.Profile("cpu", "nanoseconds").Time(uint64(i+1), 1).Sample(pt.Value(1, "f"))
	}
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, telemetry.Shutdown(context.Background())) })
	core, logs := observer.New(zap.ErrorLevel)
	set := settingsOf(telemetry)
	set.Logger = zap.New(core)
	e := newTestExporterWith(t, pyroscopetest.New(t), set, nil)
	sent := &countingTransport{}
	e.client.HTTP.Transport = sent
	require.NoError(t, e.push(t.Context(), build.Build()), "some were sent")
	require.Len(t, logs.All(), 1)
	require.Contains(t, logs.All()[0].ContextMap()["error"],
		"the labels of the message's series take more than 64 times its size")
	dropped := collectortest.Sum(t, telemetry, "otelcol_exporter_pyroscope_dropped_samples", "reason", droppedTooLarge)
	require.Positive(t, dropped)
	require.EqualValues(t, n, dropped+int64(sent.requests))
}

// Attributes of samples are renamed as those of resources are: Pyroscope would refuse the whole profile.
func TestSampleAttributesGetNamesOfLabels(t *testing.T) {
	pd := pt.New().Profile("cpu", "nanoseconds").Sample(
		pt.Value(1, "main").With(pt.Attr("output-level", "L6"), pt.Attr("local root span id", "583"),
			pt.Attr("foo.bar", "x"), pt.Attr("foo_bar", "y"), pt.Attr("bytes.read", int64(7)), pt.Attr("", "z"),
			pt.Attr("is.daemon", true), pt.Attr("some.load", 0.5), pt.Attr("all.tags", []any{"a", "b"}),
			pt.Attr("all.sizes", []any{int64(1), int64(2)})),
		pt.Value(2, "main").With(pt.Attr("foo.bar", "x")),
		pt.Value(3, "main").With(pt.Attr("span id", "9")).Linked([16]byte{1}, [8]byte{2}),
	).Build()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, telemetry.Shutdown(context.Background())) })
	s := pyroscopetest.New(t)
	require.NoError(t, newTestExporterWith(t, s, settingsOf(telemetry), nil).push(t.Context(), pd))
	require.EqualValues(t, 3, collectortest.Sum(t, telemetry, "otelcol_exporter_pyroscope_dropped_labels"),
		"foo_bar, the one without a name, and the id beside a link")
	samples := s.Series()[0].Pprof.Sample
	for i, want := range []map[string][]string{
		{"output_level": {"L6"}, "local_root_span_id": {"583"}, "foo_bar": {"x"}, "is_daemon": {"true"},
			"some_load": {"0.5"}, "all_tags": {"a", "b"}},
		{"foo_bar": {"x"}},
		{"span_id": {"0200000000000000"}},
	} {
		require.Equal(t, want, samples[i].Label)
	}
	require.Equal(t, map[string][]int64{"bytes.read": {7}, "all.sizes": {1, 2}}, samples[0].NumLabel)
}

// A pprof arrives with all that it measured, though its samples lose their times, and labels their dots. A pprof has
// attributes of its own, of its mappings and of its profile, that samples lack: they are no reason to combine samples.
func TestPprofsAddUp(t *testing.T) {
	for name, isChanged := range map[string]bool{
		"go-heap": false, "go-mutex": false, "go-build-merged-cpu-large": false, "go-cpu-labels": false,
		"node-datadog-wall-cpu": false, "node-datadog-timeline-wall": true,
	} {
		t.Run(name, func(t *testing.T) {
			data := pt.FileBytes(t, filepath.Join("..", "..", "testdata", "pprof", name+".pb.gz"))
			want := pt.ParsePprof(t, data)
			pd, _, err := decode.Decode(data, decode.Options{TimestampLabels: decode.DefaultTimestampLabels()})
			require.NoError(t, err)
			s := pyroscopetest.New(t)
			e := newTestExporter(t, s, func(c *Config) { c.MaxProfileSamples = math.MaxInt32 })
			require.Equal(t, isChanged, newView(pd, e.cfg).changesSamples)
			require.NoError(t, e.push(t.Context(), pd))
			got := map[string]int64{}
			for _, one := range s.Series() {
				addUp(got, one.Pprof)
				require.NotContains(t, one.Pprof.Sample[0].NumLabel, "end_timestamp_ns")
			}
			for _, sample := range want.Sample {
				labels := map[string][]string{}
				for key, values := range sample.Label {
					labels[kind.LabelName(key, false)] = values
				}
				sample.Label = labels
			}
			sums := map[string]int64{}
			addUp(sums, want)
			require.Equal(t, sums, got)
		})
	}
}

// addUp adds the values of a pprof to sums, by type, leaf and labels.
func addUp(sums map[string]int64, p *profile.Profile) {
	for _, sample := range p.Sample {
		leaf := ""
		if len(sample.Location) > 0 && len(sample.Location[0].Line) > 0 {
			leaf = sample.Location[0].Line[0].Function.Name
		}
		for i, value := range sample.Value {
			if value != 0 {
				sums[fmt.Sprint(p.SampleType[i].Type, leaf, sample.Label)] += value
			}
		}
	}
}
