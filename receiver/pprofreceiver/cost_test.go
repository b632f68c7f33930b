// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package pprofreceiver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/fetch"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/push"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

const mib = 1 << 20

// costlyPayloads returns payloads of about size bytes that become as much as possible.
func costlyPayloads(size int) map[string][]byte {
	bodies := map[string][]byte{}
	for _, inputs := range []worst.Inputs{
		worst.PProf.Only("samples", "distinct stacks", "distinct labels", "text as labels", "zeros"),
		worst.Folded.Only("keys and times"), worst.Perf.Only("small stacks"), worst.Speedscope.Only("many stacks"),
		worst.Firefox.Only("shared stacks"), worst.V8.Only("stacks"),
	} {
		maps.Insert(bodies, inputs.All(size))
	}
	return bodies
}

// costlyUploads returns forms as of Datadog's libraries of about size bytes, with their content types.
func costlyUploads(t testing.TB, size int) map[string][2]string {
	const event = `{"tags_profiler":"service:shop"}`
	pprof := worst.PProf["samples"](size / 128)
	uploads := map[string][2]string{}
	for name, parts := range map[string][]any{
		"upload of tags": {"event.json", `{"tags_profiler":"` + strings.Repeat("a:b,", size/4) + `"}`, "a.pprof",
			pprof},
		"upload of a tag": {"event.json", `{"tags_profiler":"a:` + strings.Repeat("b", size) + `"}`, "a.pprof",
			pprof},
		"upload of nested JSON": {"event.json", strings.Repeat(`{"info":`, size/8), "a.pprof", pprof},
		"upload of endpoints": {"event.json", `{"endpoint_counts":{` + strings.Repeat(`"a":1,`, size/6) + `"b":1}}`,
			"a.pprof", pprof},
		"upload of many profiles": append(manyFiles(127, pprof), "event.json", event),
		"upload of a large one":   {"event.json", event, "a.pprof", worst.PProf["distinct stacks"](size)},
		"upload of folded stacks": {"event.json", event, "a.txt", worst.Folded["keys and times"](size)},
	} {
		body, contentType := datadogUpload(t, parts...)
		uploads[name] = [2]string{string(body), contentType}
	}
	return uploads
}

// The permitted cost of the entries of this receiver.
const (
	entryConstant = 24 << 20
	entryFactor   = 64
)

// answerWith is a transport that answers without a network.
type answerWith func(*http.Request) *http.Response

func (a answerWith) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

// entries returns the ways by which bytes reach the receiver. Each sends one body with a Content-Encoding and a content
// type. Files are decoded as the answers of scrapes are.
func entries(t testing.TB, f *fixture) map[string]func(body []byte, encoding, contentType string) {
	in := f.Ingester("scrape", "http", f.receiver.cfg.Limits.MaxProfileBytes)
	scraped := fetch.Fetcher{MaxBytes: in.MaxBytes()}
	return map[string]func(body []byte, encoding, contentType string){
		"push": func(body []byte, encoding, contentType string) {
			request := httptest.NewRequest(http.MethodPost, push.Path, bytes.NewReader(body))
			request.Header.Set("Content-Encoding", encoding)
			request.Header.Set("Content-Type", contentType)
			f.pushServer().ServeHTTP(httptest.NewRecorder(), request)
		},
		"datadog": func(body []byte, encoding, contentType string) {
			request := httptest.NewRequest(http.MethodPost, push.DatadogPath, bytes.NewReader(body))
			request.Header.Set("Content-Encoding", encoding)
			request.Header.Set("Content-Type", contentType)
			f.pushServer().ServeHTTP(httptest.NewRecorder(), request)
		},
		"scrape": func(body []byte, encoding, contentType string) {
			scraped.Client = &http.Client{Transport: answerWith(func(*http.Request) *http.Response {
				return &http.Response{
					StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
					Header: http.Header{"Content-Encoding": {encoding}, "Content-Type": {contentType}},
				}
			})}
			reservation := in.Begin()
			defer reservation.Release()
			data, err := scraped.Get(context.Background(), &url.URL{Scheme: "http", Host: "target", Path: "/"}, "", reservation)
			if err == nil {
				_ = in.Ingest(context.Background(),
					ingest.Payload{Data: data, Identity: ingest.NewIdentity(), Reservation: reservation}, 0)
			}
		},
	}
}

// Payloads cost memory and time in proportion to their decompressed size, by every entry and in every form.
func TestEntriesAreBoundedByTheirInput(t *testing.T) {
	const size = mib
	f := startFixture(t,
		"server: {endpoint: 'localhost:0', compression_algorithms: ['', gzip, zstd, zlib, snappy, lz4]}\nlimits: {max_profile_bytes: 4194304}")
	f.Next.Discard = true
	bodies := costlyUploads(t, size)
	add := func(name, contentType string, body []byte) { bodies[name] = [2]string{string(body), contentType} }
	for name, body := range costlyPayloads(size) {
		add(name, "", body)
	}
	add("a bomb", "", pt.Gzip(make([]byte, 64*mib)))
	parts, partsType := form(t, manyFiles(128, worst.PProf["samples"](size/128))...)
	add("many parts", partsType, parts)
	const formOfX = "multipart/form-data; boundary=x"
	add("long headers", formOfX, []byte("--x\r\nContent-Disposition: form-data; name=a; filename=b\r\n"+
		strings.Repeat("A: b\r\n", size/6)+"\r\n"))
	add("many boundaries", formOfX, bytes.Repeat([]byte("--x\r\n\r\n"), size/7))
	add("one boundary", formOfX, bytes.Repeat([]byte("--x\r\n"), size/5))
	for name, sent := range bodies {
		body, contentType := []byte(sent[0]), sent[1]
		for entry, send := range entries(t, f) {
			for form, sent := range map[string][]byte{"": body, "gzip": pt.Gzip(body)} {
				for _, encoding := range slices.Compact([]string{"", form}) {
					t.Run(fmt.Sprintf("%s/%s/%s/%s", entry, name, form, encoding), func(t *testing.T) {
						pt.RequireCost(t, pt.BoundOf(len(body), entryConstant, entryFactor), func() {
							send(sent, encoding, contentType)
						})
					})
				}
			}
		}
	}
}

// FuzzEntries sends arbitrary bodies by every entry.
func FuzzEntries(f *testing.F) {
	for _, body := range costlyPayloads(4 << 10) {
		f.Add(body, "", "")
		f.Add(pt.Gzip(body), "gzip", "")
		f.Add(pt.Gzip(body), "", "")
	}
	body, contentType := form(f, manyFiles(4, sourcetest.Captured(f, "go-mutex.pb.gz"))...)
	f.Add(body, "", contentType)
	for _, upload := range costlyUploads(f, 4<<10) {
		f.Add([]byte(upload[0]), "", upload[1])
	}
	for _, path := range []string{
		"formats/gotrace/testdata/go1.22.trace.gz", "formats/jfr/testdata/jdk17.jfr.gz",
		"formats/cpuprofile/testdata/node20.cpuprofile",
		"formats/perfscript/testdata/burn.perf.txt",
	} {
		data := pt.FileBytes(f, filepath.Join("..", "..", "internal", path))
		f.Add(data, "", "")
	}
	upload, err := os.ReadFile(filepath.Join("..", "..", "internal", "pprof", "decode", "testdata", "dd-trace",
		"input.body"))
	require.NoError(f, err)
	f.Add(upload, "", "multipart/form-data; boundary=151e358505afa95f")
	f.Add([]byte("\xff\x06\x00\x00sNaPpY"), "snappy", "")
	f.Add([]byte("\x80\x80\x80\x80\x08x"), "snappy", "")
	f.Add([]byte("\x28\xb5\x2f\xfd\xa4\xff\xff\xff\x7f\x00"), "zstd", "")
	f.Add([]byte("\x04\x22\x4d\x18\x60\x70\x73\x00"), "lz4", "")
	const limit = 400_000
	fixture := newFixture(f,
		"server: {endpoint: 'localhost:0', compression_algorithms: ['', gzip, zstd, zlib, deflate, snappy, x-snappy-framed, lz4]}\n"+
			fmt.Sprintf("limits: {max_profile_bytes: %d}", limit)).start(nil)
	fixture.Next.Discard = true
	all := entries(f, fixture)
	f.Fuzz(func(t *testing.T, body []byte, encoding, contentType string) {
		fixture.Next.T = t
		for _, send := range all {
			// The limit bounds what is decompressed, and a byte decompresses to at most about a thousand.
			most := min(limit, 2000*len(body)+64<<10)
			pt.RequireCost(t, pt.BoundOf(most, entryConstant, entryFactor), func() { send(body, encoding, contentType) })
		}
		if held := budget.Process().HeldBytes(); held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
	})
}
