// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/formats/gotrace"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/push"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

const (
	foldedText    = "main;work 3\nmain;rest 4\n"
	metricGuessed = "otelcol_receiver_pprof_guessed_clocks"
)

func (f *fixture) profilesURL() string {
	return strings.TrimSuffix(f.pushURL(), push.Path) + push.ProfilesPath
}

func captured(t *testing.T, path string) []byte {
	t.Helper()
	return profiletest.FileBytes(t, "../../testdata/"+path)
}

// A trace of PyTorch is not held whole: compressed it may have max_profile_bytes, and 32 times that plain.
func TestTraceIsAStream(t *testing.T) {
	f := startFixture(t, serverOnly+"limits:\n  max_profile_bytes: 500000\n")
	trace := captured(t, "torch/torch-plain.json.gz")
	plain := profiletest.Gunzip(t, trace)
	padded := []byte(`{"schemaVersion":1,"traceEvents":[` + strings.Repeat(" ", 32*500_000))
	for url, body := range map[string][]byte{
		f.profilesURL(): trace, f.profilesURL() + "?format=auto": lz4Frame(t, plain),
		f.profilesURL() + "?format=trace_events": lz4Frame(t, plain),
	} {
		accepted(t, url, body)
	}
	for _, pd := range f.Await(3) {
		require.Contains(t, profiletest.Render(pd), "profile gpu_time in nanoseconds")
	}
	for _, body := range [][]byte{profiletest.Gzip(padded), lz4Frame(t, padded)} {
		code, _, a := send(t, f.profilesURL(), body)
		assert.Equal(t, http.StatusRequestEntityTooLarge, code, "%v", a)
	}
}

func firstProfile(pd pprofile.Profiles) pprofile.Profile {
	return pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
}

func TestFormatsRestricted(t *testing.T) {
	f := startFixture(t, serverOnly+"formats: [pprof]\n")
	code, _, a := send(t, f.profilesURL(), []byte(foldedText))
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Contains(t, a.Error, "seems to be folded, but `formats` has only [pprof]")
	code, _, a = send(t, f.profilesURL()+"?format=folded", []byte(foldedText))
	assert.Equal(t, http.StatusBadRequest, code, "%v", a)
	assert.EqualValues(t, 2, f.Sum(sourcetest.MetricRejected, "reason", string(ingest.NotPprof)))
	assert.Zero(t, f.Next.Attempts())
}

func TestFormatsQuery(t *testing.T) {
	f := startFixture(t, serverOnly)
	for query, says := range map[string]string{
		"format=flamegraph":        "must be auto or one of",
		"format=folded&format=jfr": "more than once",
		"at=yesterday":             "RFC 3339",
		"at=12":                    "RFC 3339",
		"sample_type=cpu":          "a type and a unit",
	} {
		code, _, a := send(t, f.profilesURL()+"?"+query, []byte(foldedText))
		assert.Equal(t, http.StatusBadRequest, code, query)
		assert.Contains(t, a.Error, says, query)
	}
}

// A pprof without a time ends at the time that the sender states, the same for all its types, or keeps none.
func TestPprofWithoutATime(t *testing.T) {
	f := startFixture(t, serverOnly)
	for i, query := range []string{"", "?at=1714979289"} {
		accepted(t, f.profilesURL()+query, sourcetest.Captured(t, "cpp-unsymbolized.pb.gz"))
		pd := f.Await(i + 1)[i]
		for _, p := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			assert.EqualValues(t, i*1714979289*1e9, p.Time(), query)
		}
	}
}

// A time in another unit than pprof's nanoseconds is that time, and not one in 1970.
func TestPprofWithATimeInAnotherUnit(t *testing.T) {
	f := startFixture(t, serverOnly)
	for i, at := range []int64{1714979289, 1714979289e3, 1714979289e6, 1714979289e9} {
		p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, TimeNanos: at,
			DurationNanos: 1e9, Sample: []*profile.Sample{{Value: []int64{3}}}}
		var body bytes.Buffer
		require.NoError(t, p.Write(&body))
		accepted(t, f.profilesURL(), body.Bytes())
		assert.EqualValues(t, int64(1714979289e9), firstProfile(f.Await(i + 1)[i]).Time(), at)
	}
}

// A recording without wall-clock times ends at the time that the sender states, when its file was written, or when it
// arrived.
func TestClocks(t *testing.T) {
	f := startFixture(t, serverOnly)
	at := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	for _, query := range []string{"?at=2024-05-06T07:08:09Z", "?at=1714979289", "?at=1714979289000"} {
		before := len(f.Next.All())
		accepted(t, f.profilesURL()+query, []byte(foldedText))
		profile := firstProfile(f.Await(before + 1)[before])
		assert.Equal(t, at, profile.Time().AsTime())
		assert.Zero(t, profile.AttributeIndices().Len())
	}
	assert.Zero(t, f.Sum(metricGuessed))
	began := time.Now()
	accepted(t, f.profilesURL(), []byte(foldedText))
	arrived := f.Await(4)[3]
	assert.WithinRange(t, firstProfile(arrived).Time().AsTime(), began, time.Now())
	assert.Contains(t, profiletest.Render(arrived), `profile.clock.guess="arrival"`)
	assert.EqualValues(t, 1, f.Sum(metricGuessed, "format", "folded"))
}

func TestFormatsOfFiles(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "out.folded")
	require.NoError(t, os.WriteFile(path, []byte(foldedText), 0o600))
	written := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	require.NoError(t, os.Chtimes(path, written, written))
	f := startFixture(t, "file: {include: '"+folder+"/*', initial_delay: 0s, collection_interval: 10ms}\n")
	got := f.Await(1)[0]
	assert.Equal(t, written, firstProfile(got).Time().AsTime())
	assert.Contains(t, profiletest.Render(got), `profile.clock.guess="file_modified"`)
}

// Answers are recognised by their content, whatever their content type says.
func TestFormatsOfScrapes(t *testing.T) {
	const v8 = `{"nodes":[{"id":1,"callFrame":{"functionName":"f"}}],"startTime":1,"endTime":9,"samples":[1],"timeDeltas":[1]}`
	for name, handler := range map[string]http.HandlerFunc{
		"folded, gzip": sourcetest.Serve(profiletest.Gzip([]byte(foldedText)), "Content-Type",
			"application/octet-stream"),
		"folded as text":   sourcetest.Serve([]byte(foldedText), "Content-Type", "text/plain; charset=utf-8"),
		"folded as a page": sourcetest.Serve([]byte(strings.Repeat(foldedText, 1000)), "Content-Type", "text/html"),
		"folded as text, gzip": sourcetest.Serve(profiletest.Gzip([]byte(foldedText)), "Content-Type",
			"text/plain", "Content-Encoding", "gzip"),
		"perf script as text": sourcetest.Serve(
			[]byte("sh 12/14 [003] 99.000001: 250000 cpu-clock:u: \n\tffff sym+0x1 (/bin/x)\n\n"), "Content-Type", "text/plain"),
		"a .cpuprofile as JSON":      sourcetest.Serve([]byte(v8), "Content-Type", "application/json"),
		"a .cpuprofile as text":      sourcetest.Serve([]byte(v8), "Content-Type", "text/plain"),
		"folded, lz4, as it is sent": sourcetest.Serve(lz4Frame(t, []byte(foldedText)), "Content-Type", "text/plain"),
	} {
		t.Run(name, func(t *testing.T) {
			site := sourcetest.NewSite(t, handler)
			f := startFixture(t, "remote: {endpoint: '"+site.URL+"/p', initial_delay: 0s}\n")
			assert.Contains(t, profiletest.Render(f.Await(1)[0]), `profile.clock.guess="arrival"`)
		})
	}
}

// lz4Frame compresses plain bytes as libdatadog did until version 23.
func lz4Frame(t testing.TB, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := lz4.NewWriter(&b)
	_, err := w.Write(plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// Frames of lz4 are read from every source, and refused by their name if they are damaged or too large.
func TestLZ4(t *testing.T) {
	heap := sourcetest.Captured(t, "go-heap.pb.gz")
	frame := lz4Frame(t, profiletest.Gunzip(t, heap))
	f := startFixture(t, serverOnly)
	send(t, f.pushURL(), heap)
	accepted(t, f.pushURL(), frame)
	got := f.Await(2)
	require.NoError(t, profiletest.Equal(got[0], got[1]))

	body, contentType := datadogUpload(t, "event.json", `{"tags_profiler":"service:shop"}`, "auto.pprof", frame)
	accepted(t, f.base()+push.DatadogPath, body, "Content-Type", contentType)
	require.Equal(t, got[0].SampleCount(), f.Await(3)[2].SampleCount())

	code, _, a := send(t, f.pushURL(), frame[:len(frame)-9])
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, fmt.Sprint(a), "a truncated lz4 stream")
	small := startFixture(t, serverOnly+"limits: {max_profile_bytes: 65536}\n")
	code, _, a = send(t, small.pushURL(), lz4Frame(t, make([]byte, 1<<20)))
	require.Equal(t, http.StatusRequestEntityTooLarge, code, "%v", a)
}

// A real target is scraped for traces. The kind does not name the profiles, since a trace has several.
func TestTracesAreScraped(t *testing.T) {
	site := sourcetest.NewSite(t, pprof.Trace)
	stop := make(chan struct{})
	var working sync.WaitGroup
	defer working.Wait()
	defer close(stop)
	working.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	f := startFixture(t, `
go_trace: {min_duration: 1ms}
scrape:
  configs:
    - job_name: traces
      scrape_interval: 3s
      static_configs: [{targets: ["`+strings.TrimPrefix(site.URL, "http://")+`"]}]
      profiles:
        process_cpu: {enabled: false}
        memory: {enabled: false}
        goroutine: {enabled: false}
        block: {enabled: false}
        mutex: {enabled: false}
        trace: {enabled: true}
`)
	rendered := profiletest.Render(f.Await(1)[0])
	assert.Contains(t, rendered, `go.goroutine.state="select"`)
	assert.Contains(t, rendered, "pprofreceiver.TestTracesAreScraped.func1")
	assert.NotContains(t, rendered, "pprof.scope.profile_name")
}

func TestGoTraceConfig(t *testing.T) {
	f := startFixture(t, serverOnly+"limits: {max_profile_bytes: 50000000}\n")
	code, _, a := send(t, f.profilesURL(),
		profiletest.Gzip([]byte("go 1.21 trace\x00\x00\x00"+strings.Repeat("x", 33<<20))))
	assert.Equal(t, http.StatusRequestEntityTooLarge, code)
	assert.Contains(t, a.Error, "more than 33554432 bytes")
	f = startFixture(t, serverOnly+"go_trace: {mode: aggregated}\n")
	accepted(t, f.profilesURL(), sourcetest.Captured(t, "go-exec.trace"))
	assert.NotContains(t, profiletest.Render(f.Await(1)[0]), "go.goroutine.id")
}

// What the options of Go traces leave out is counted: with what arrives, it is all there is.
func TestGoTraceCountsWhatItLeavesOut(t *testing.T) {
	trace := sourcetest.Captured(t, "go-exec.trace")
	all := gotrace.DefaultOptions()
	all.MinDuration, all.Everything = 0, true
	_, stats, err := gotrace.Decode(trace, all)
	require.NoError(t, err)

	f := startFixture(t, serverOnly)
	accepted(t, f.profilesURL(), trace)
	arrived := 0
	for p := range otlp.Profiles(f.Await(1)[0]) {
		for _, s := range p.Samples().All() {
			arrived += s.TimestampsUnixNano().Len()
		}
	}
	tooShort := f.Sum(sourcetest.MetricDropped, "reason", "too_short")
	filtered := f.Sum(sourcetest.MetricDropped, "reason", "filtered")
	assert.Positive(t, tooShort)
	assert.Positive(t, filtered)
	assert.EqualValues(t, stats.Events, int64(arrived)+tooShort+filtered)
}

// dd-trace's wall profile has the time of each sample.
func TestTimestampLabels(t *testing.T) {
	payload := sourcetest.Captured(t, "node-datadog-timeline-wall.pb.gz")
	for config, want := range map[string]string{"": `profile.timestamp_label="end_timestamp_ns"`,
		"timestamp_labels: []\n": "end_timestamp_ns=1"} {
		f := startFixture(t, serverOnly+config)
		accepted(t, f.pushURL(), payload)
		assert.True(t, strings.Contains(profiletest.Render(f.Await(1)[0]), want), want)
	}
}

// Events with a stack that are not read are counted by type, and logged once for each type.
func TestUnreadEventsAreCounted(t *testing.T) {
	const types = 70
	var classes []string
	for i := range types {
		classes = append(classes, fmt.Sprintf("shop.Type%d stackTrace:jdk.types.StackTrace*", i))
	}
	recording := func(events ...string) []byte {
		w := worst.NewJFR(classes...)
		for _, event := range events {
			w.Event(event, 1)
		}
		return w.Bytes()
	}
	f := startFixture(t, serverOnly)
	for range 2 {
		accepted(t, f.profilesURL(), recording("shop.Type0", "shop.Type0", "shop.Type1"))
	}
	const metric = "otelcol_receiver_pprof_unread_events"
	assert.EqualValues(t, 4, f.Sum(metric, "type", "shop.Type0"))
	assert.EqualValues(t, 2, f.Sum(metric, "type", "shop.Type1"))
	lines := f.Logs.FilterMessageSnippet("not read")
	assert.Equal(t, 2, lines.Len())
	assert.Equal(t, 1, lines.FilterField(zap.String("type", "shop.Type0")).Len())

	for i := range types {
		send(t, f.profilesURL(), recording(fmt.Sprintf("shop.Type%d", i)))
	}
	assert.EqualValues(t, types-64, f.Sum(metric, "type", "other"), "names come from senders")
	assert.Equal(t, 64, f.Logs.FilterMessageSnippet("not read").Len())
}

// Each format that docs/formats.md names is accepted by both routes, by content and by name, and that has no other
// rows.
func TestAcceptedFormats(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "docs/formats.md", "| `formats` | what it is | in OTLP |")
	delete(rows, "formats")
	assert.ElementsMatch(t, ingest.AllFormats(), slices.Collect(maps.Keys(rows)))
	f := startFixture(t, serverOnly)
	const formatFiles = "../internal/formats/"
	for format, of := range map[string]struct{ file, has string }{
		"pprof":        {"pprof/go-cpu-labels.pb.gz", "profile cpu in nanoseconds"},
		"go_trace":     {"pprof/go-exec.trace", "profile off_cpu in nanoseconds"},
		"perf_script":  {formatFiles + "perfscript/testdata/burn.perf.txt", "profile cpu in nanoseconds"},
		"cpuprofile":   {formatFiles + "cpuprofile/testdata/node20.cpuprofile", "profile samples in count"},
		"jfr":          {formatFiles + "jfr/testdata/jdk17.jfr.gz", "profile samples in count"},
		"speedscope":   {formatFiles + "speedscope/testdata/evented.speedscope.json", "profile wall in"},
		"firefox":      {formatFiles + "firefox/testdata/columns.json", "profile samples in count"},
		"trace_events": {"torch/torch-plain.json.gz", "profile gpu_time in nanoseconds"},
		"torch_memory": {"torch/torch-memory.pickle.gz", "profile inuse_space in bytes"},
		"folded":       {"", "profile samples in count"},
	} {
		assert.Contains(t, rows, format)
		delete(rows, format)
		data := []byte(foldedText)
		if of.file != "" {
			data = captured(t, of.file)
		}
		for url, body := range map[string][]byte{
			f.pushURL(): data, f.profilesURL() + "?format=" + format: data,
			f.profilesURL() + "?format=auto": profiletest.Gzip(plain(t, data)),
		} {
			before := len(f.Next.All())
			accepted(t, url, body)
			pd := f.Await(before + 1)[before]
			assert.True(t, strings.Contains(profiletest.Render(pd), of.has), "%s has %s", url, of.has)
			assert.False(t, firstProfile(pd).ProfileID().IsEmpty())
			assert.NotZero(t, firstProfile(pd).Time(), url)
		}
	}
	assert.Empty(t, rows)
}

// Each file of testdata/refused is refused as docs/formats.md has it, and that has no other rows.
func TestRefusedFormats(t *testing.T) {
	rows := profiletest.ReadmeTable(t, "docs/formats.md", "| file | what to do |")
	delete(rows, "file")
	wanted := map[string]bool{}
	for file, row := range rows {
		wanted[fmt.Sprintf("it seems to be %s (%s)", file, row[1])] = false
	}
	paths, err := filepath.Glob("testdata/refused/*")
	require.NoError(t, err)
	f := startFixture(t, serverOnly)
	for _, path := range paths {
		data := profiletest.FileBytes(t, path)
		for _, body := range [][]byte{data, profiletest.Gzip(data)} {
			code, _, a := send(t, f.profilesURL(), body)
			assert.Equal(t, http.StatusUnsupportedMediaType, code, path)
			text := strings.TrimPrefix(strings.Split(a.Error, "; accepted are")[0], "not a pprof protobuf: ")
			assert.Contains(t, wanted, text, path)
			wanted[text] = true
		}
	}
	for text, found := range wanted {
		assert.True(t, found, "no file of testdata/refused: %s", text)
	}
	assert.Empty(t, f.Next.All())
}
