// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/push"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

// datadogUpload returns a form as of Datadog's libraries of (name, content) pairs. A part and its file have the same
// name.
func datadogUpload(t testing.TB, parts ...any) (body []byte, contentType string) {
	t.Helper()
	var b strings.Builder
	w := multipart.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		name := parts[i].(string)
		field := name
		if name == "event.json" {
			field = "event"
		}
		part, err := w.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {fmt.Sprintf("form-data; name=%q; filename=%q", field, name)},
		})
		require.NoError(t, err)
		_, err = fmt.Fprintf(part, "%s", parts[i+1])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return []byte(b.String()), w.FormDataContentType()
}

// What dd-trace for Node has sent arrives with its service, its ids and its times.
func TestDatadogsUpload(t *testing.T) {
	body, err := os.ReadFile(filepath.Join("..", "..", "internal", "pprof", "decode", "testdata", "dd-trace",
		"input.body"))
	require.NoError(t, err)
	f := startFixture(t, serverOnly)
	require.Empty(t, accepted(t, f.base()+push.DatadogPath, body, "Content-Type",
		"multipart/form-data; boundary=151e358505afa95f"))
	names := map[string]int{}
	for _, pd := range f.Await(3) {
		require.NoError(t, profiletest.Check(pd, profiletest.AllowRepeatedSamples()))
		require.Equal(t, map[string]any{
			"service.name": "shop", "service.instance.id": "2f9c7360-9e2c-4bbe-866b-44cd7c35c858", "process.pid": int64(29900),
			"process.runtime.name": "nodejs", "process.runtime.version": "v20.20.2", "language": "javascript",
			"runtime_arch": "x64", "runtime_os": "linux", "profiler_version": "5.132.0",
		}, pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw())
		name := kind.Stated(pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes())
		names[name] = timestampsIn(pd)
		for p := range otlp.Profiles(pd) {
			// dd-trace for Node writes the end of the recording into time_nanos; event.json has both. Times of samples in
			// milliseconds are rounded.
			require.WithinDuration(t, time.Date(2026, 11, 21, 21, 29, 33, 369e6, time.UTC), p.Time().AsTime(),
				10*time.Millisecond, name)
			require.InDelta(t, 4176e6, p.DurationNano(), 20e6, name)
		}
	}
	require.Len(t, names, 3)
	assert.Zero(t, names["memory"])
	assert.Greater(t, names["wall"], 100)
	assert.Positive(t, names["timeline"])
}

func timestampsIn(pd pprofile.Profiles) (n int) {
	for _, profile := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		for _, s := range profile.Samples().All() {
			n += s.TimestampsUnixNano().Len()
		}
	}
	return n
}

// An upload whose times cannot be read keeps those of its profiles.
func TestDatadogsTimes(t *testing.T) {
	goCPU := sourcetest.Captured(t, "go-cpu-labels.pb.gz")
	for event, want := range map[string]time.Duration{
		`{"start":"2026-11-21T21:29:33.5Z","end":"2026-11-21T21:30:38Z"}`: 64500 * time.Millisecond,
		`{"start":"2026-11-21T21:29:33Z","end":"2026-11-21T21:29:33Z"}`:   0,
		`{"start":"yesterday","end":7}`:                                   0,
		`{}`:                                                              0,
	} {
		f := startFixture(t, serverOnly)
		body, contentType := datadogUpload(t, "event.json", event, "cpu.pprof", goCPU)
		accepted(t, f.base()+push.DatadogPath, body, "Content-Type", contentType)
		p := profiletest.ProfileAt(f.Await(1)[0], 0)
		if want == 0 {
			own := profiletest.ParsePprof(t, goCPU)
			require.Equal(t, [2]int64{own.TimeNanos, own.DurationNanos}, [2]int64{int64(p.Time()), int64(p.DurationNano())},
				event)
			continue
		}
		require.Equal(t, want, time.Duration(p.DurationNano()))
		require.Equal(t, time.Date(2026, 11, 21, 21, 29, 33, 5e8, time.UTC), p.Time().AsTime())
	}
}

func TestDatadogsTags(t *testing.T) {
	mutex := sourcetest.Captured(t, "go-mutex.pb.gz")
	for name, tc := range map[string]struct {
		event string
		want  map[string]any
	}{
		"tags": {`{"tags_profiler":"service:shop,env:prod,version:1.2,host:web-1,region:eu,runtime-id:x,profile_seq:7,a:b:c"}`, map[string]any{
			"service.name": "shop", "deployment.environment.name": "prod", "service.version": "1.2", "host.name": "web-1",
			"region": "eu", "service.instance.id": "x", "a": "b:c"}},
		"info": {`{"info":{"application":{"service":"shop","env":"prod","version":"1.2"},"platform":{"hostname":"web-1"}}}`,
			map[string]any{
				"service.name": "shop", "deployment.environment.name": "prod", "service.version": "1.2", "host.name": "web-1"}},
		"the first counts": {`{"tags_profiler":"service:shop,service:other","info":{"application":{"service":"third"}}}`,
			map[string]any{"service.name": "shop"}},
		"nothing": {`{"tags_profiler":"version:undefined,env:,lonely, "}`,
			map[string]any{"service.name": "unknown_service"}},
		"another type": {`{"tags_profiler":"service:s","info":{"application":{"version":1.2,"env":"prod"}}}`,
			map[string]any{"service.name": "s", "deployment.environment.name": "prod"}},
		"no object":   {`{"tags_profiler":"service:s","info":"x","start":7}`, map[string]any{"service.name": "s"}},
		"not objects": {`{"tags_profiler":"service:s","info":{"application":[],"platform":null}}`, map[string]any{"service.name": "s"}},
		"not a number": {`{"tags_profiler":"service:s,process_id:me"}`,
			map[string]any{"service.name": "s", "process.pid": "me"}},
	} {
		t.Run(name, func(t *testing.T) {
			// dd-trace-go writes event.json after the profiles, and adds metrics.json.
			for _, parts := range [][]any{
				{"event.json", tc.event, "mutex.pprof", mutex},
				{"mutex.pprof", mutex, "metrics.json", `[["go_x",1]]`, "event.json", tc.event},
			} {
				f := startFixture(t, serverOnly)
				body, contentType := datadogUpload(t, parts...)
				accepted(t, f.base()+push.DatadogPath, body, "Content-Type", contentType)
				require.Equal(t, tc.want, f.Await(1)[0].ResourceProfiles().At(0).Resource().Attributes().AsRaw())
			}
		})
	}
}

// Libraries of before 2022 send tags and times as fields of the form: what dd-trace-go v1.24, dd-trace for Node 0.33,
// ddtrace for Python 0.40 and dd-trace-java 0.45 have in common, and what each has besides.
func TestDatadogsFormsBeforeEvents(t *testing.T) {
	data := sourcetest.Captured(t, "go-cpu-labels.pb.gz")
	for name, parts := range map[string][][2]string{
		"go":     {{"runtime", "go"}, {"types[0]", "samples,cpu"}, {"data[0]", "pprof-data"}},
		"node":   {{"language", "javascript"}, {"profiler_version", "0.33.0"}, {"data[0]", "wall.pb.gz"}},
		"python": {{"runtime-id", "x"}, {"type", "cpu+alloc+exceptions"}, {"chunk-data", "profile.pb.gz"}},
		"java":   {{"recording-name", "x"}, {"chunk-seq-num", "0"}, {"chunk-data", "chunk"}},
	} {
		t.Run(name, func(t *testing.T) {
			var body bytes.Buffer
			w := multipart.NewWriter(&body)
			for _, field := range [][2]string{{"recording-start", "2026-11-21T21:29:33Z"},
				{"recording-end", "2026-11-21T21:30:33Z"}, {"tags[]", "host:web-1"}, {"tags[]", "service:shop"},
				{"tags[]", "regions:eu,us"}} {
				require.NoError(t, w.WriteField(field[0], field[1]))
			}
			for _, field := range parts[:len(parts)-1] {
				require.NoError(t, w.WriteField(field[0], field[1]))
			}
			file, err := w.CreateFormFile(parts[len(parts)-1][0], parts[len(parts)-1][1])
			require.NoError(t, err)
			_, _ = file.Write(data)
			require.NoError(t, w.Close())
			f := startFixture(t, serverOnly)
			accepted(t, f.base()+push.DatadogPath, body.Bytes(), "Content-Type", w.FormDataContentType())
			got := f.Await(1)[0]
			require.Equal(t, map[string]any{"service.name": "shop", "host.name": "web-1", "regions": "eu,us"},
				got.ResourceProfiles().At(0).Resource().Attributes().AsRaw())
			require.Equal(t, time.Date(2026, 11, 21, 21, 29, 33, 0, time.UTC), profiletest.ProfileAt(got, 0).Time().AsTime())
			require.Equal(t, time.Minute, time.Duration(profiletest.ProfileAt(got, 0).DurationNano()))
		})
	}
}

// Attachments that are not read may be of any size, such as the provenance of a large application's code.
func TestDatadogsAttachmentsAreSkipped(t *testing.T) {
	f := startFixture(t, serverOnly)
	body, contentType := datadogUpload(t, "code-provenance.json", strings.Repeat("x", 1<<20), "a.pprof",
		sourcetest.Captured(t, "go-mutex.pb.gz"),
		"metrics.json", strings.Repeat("x", 1<<20), "event.json", `{"tags_profiler":"service:shop"}`)
	accepted(t, f.base()+push.DatadogPath, body, "Content-Type", contentType)
	require.Len(t, f.Next.All(), 1)
}

func TestDatadogsAnswers(t *testing.T) {
	const event = `{"tags_profiler":"service:shop"}`
	mutex := sourcetest.Captured(t, "go-mutex.pb.gz")
	manyTags := `{"tags_profiler":"` + strings.Repeat("a:b,", 256) + `"}`
	longTag := `{"tags_profiler":"service:shop,a:` + strings.Repeat("x", 1<<20) + `"}`
	for name, tc := range map[string]struct {
		parts  []any
		status int
		says   string
	}{
		"no event":    {[]any{"a.pprof", mutex}, http.StatusBadRequest, "neither a part event"},
		"no profiles": {[]any{"event.json", event}, http.StatusBadRequest, "no profiles"},
		"nothing":     {nil, http.StatusBadRequest, "form"},
		"not JSON":    {[]any{"event.json", "{", "a.pprof", mutex}, http.StatusBadRequest, "event.json"},
		"one is bad": {[]any{"event.json", event, "a.pprof", mutex, "b.pprof", "\x01\x02"}, http.StatusBadRequest,
			`nothing was accepted: file \"b.pprof\"`},
		"many tags": {[]any{"event.json", manyTags, "a.pprof", mutex}, http.StatusBadRequest, "257 tags"},
		"a long tag": {[]any{"event.json", longTag, "a.pprof", mutex}, http.StatusRequestEntityTooLarge,
			"stated attributes"},
		"many parts": {append([]any{"event.json", event}, manyFiles(128, mutex)...), http.StatusRequestEntityTooLarge,
			"128 files"},
		"no tags":          {[]any{"format", "pprof", "data[0]", mutex}, http.StatusBadRequest, "neither a part event"},
		"an empty profile": {[]any{"event.json", event, "a.pprof", ""}, http.StatusBadRequest, "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFixture(t, serverOnly)
			body, contentType := datadogUpload(t, tc.parts...)
			code, _, answer := postRaw(t, f.base()+push.DatadogPath, body, "Content-Type", contentType)
			require.Equal(t, tc.status, code, answer)
			require.Contains(t, answer, tc.says)
			require.Zero(t, f.Next.Attempts())
			require.EqualValues(t, 1, f.Sum(sourcetest.MetricRejected))
		})
	}
	f := startFixture(t, serverOnly)
	url := f.base() + push.DatadogPath
	code, _, answer := postRaw(t, url, mutex)
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Contains(t, answer, "multipart/form-data")
	response := collectortest.Ask(t, http.MethodGet, url, nil)
	assert.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
	assert.Equal(t, http.MethodPost, response.Header.Get("Allow"))
	body, contentType := datadogUpload(t, "event.json", event, "a.pprof", mutex)
	f.Next.RefuseWith(io.ErrUnexpectedEOF)
	code, headers, _ := postRaw(t, url, body, "Content-Type", contentType)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.NotEmpty(t, headers.Get("Retry-After"))
	f.Next.RefuseWith(consumererror.NewPermanent(io.ErrUnexpectedEOF))
	code, _, _ = postRaw(t, url, body, "Content-Type", contentType)
	assert.Equal(t, http.StatusUnprocessableEntity, code)
}

// Each resource of a payload repeats the attributes that the sender states, and perf script creates many resources.
func TestStatedAttributesAreBounded(t *testing.T) {
	f := startFixture(t, serverOnly)
	var processes strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&processes, "a %d/1 9.5: 1 x:\n\t1 a (b)\n", i+1)
	}
	query := "?service.name=shop"
	accepted(t, f.profilesURL()+query, []byte(processes.String()))
	for i := range 100 {
		query += fmt.Sprintf("&attr.%d=%d", i, i)
	}
	code, _, answer := postRaw(t, f.profilesURL()+query, []byte(processes.String()))
	require.Equal(t, http.StatusRequestEntityTooLarge, code, answer)
	require.Contains(t, answer, "101 stated attributes for each of 1000 resources")
	require.EqualValues(t, 1, f.Sum(sourcetest.MetricRejected, "reason", string(ingest.TooLarge)))
}
