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
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	pt "github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/fetch"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/push"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

const mib = 1 << 20

// costlyPayloads returns pprofs of about size bytes that decode to as much as possible.
func costlyPayloads(size int) map[string][]byte {
	base := pt.PprofWire(nil).Strings("", "cpu", "nanoseconds").ValueType(pt.PprofSampleType, 1, 2)
	fill := func(w pt.PprofWire, next func(i int) pt.PprofWire) []byte {
		for i := 0; len(w) < size; i++ {
			w = append(w, next(i)...)
		}
		return w
	}
	return map[string][]byte{
		"samples": fill(base, func(int) pt.PprofWire { return pt.PprofWire(nil).Message(pt.PprofSample, nil) }),
		"distinct stacks": fill(base, func(i int) pt.PprofWire {
			return pt.PprofWire(nil).Location(pt.PprofLocationFields{ID: uint64(i) + 1, Address: uint64(i)}).
				Message(pt.PprofSample, pt.PprofWire(nil).Packed(pt.PprofSampleLocation, uint64(i)+1).Packed(pt.PprofSampleValue,
					1))
		}),
		"labels": fill(base, func(i int) pt.PprofWire {
			return pt.PprofWire(nil).Message(pt.PprofSample, pt.PprofWire(nil).Label(pt.PprofLabel{Key: 1, Num: int64(i + 1)}))
		}),
		"text": fill(base.Strings(strings.Repeat("x", size/2)), func(i int) pt.PprofWire {
			return pt.PprofWire(nil).Message(pt.PprofSample,
				pt.PprofWire(nil).Label(pt.PprofLabel{Key: 1, Str: 3}).Label(pt.PprofLabel{Key: 2, Num: int64(i + 1)}))
		}),
		"zeros": make([]byte, size),
	}
}

// costlyFormats returns payloads of about size bytes in other formats, each event with a stack of its own.
func costlyFormats(size int) map[string][]byte {
	fill := func(head, tail string, next func(i int) string) []byte {
		b := []byte(head)
		for i := 0; len(b) < size; i++ {
			b = append(b, next(i)...)
		}
		return append(b, tail...)
	}
	return map[string][]byte{
		"folded": fill("", "", func(i int) string { return fmt.Sprintf("a;%d 1 k=%d %d\n", i, i, 1687841528000000+i) }),
		"perf": fill("", "", func(i int) string {
			return fmt.Sprintf("a %d/1 9.%06d: 1 x:\n\t%x a (b)\n", i%1000, i%1e6, i)
		}),
		"speedscope": fill(`{"shared":{"frames":[{}]},"profiles":[{"unit":"seconds","events":[{}`, "]}]}",
			func(i int) string { return fmt.Sprintf(`,{"type":"O","frame":0,"at":%d}`, i) }),
		"firefox": fill(`{"threads":[{"stackTable":{"frame":[0]},"frameTable":{"func":[0]}}`, "]}", func(i int) string {
			return fmt.Sprintf(
				`,{"tid":%d,"samples":{"stack":[0],"time":[%d]},"stackTable":{"frame":[0]},"frameTable":{"func":[0]}}`, i, i)
		}),
		"cpuprofile": fill(`{"startTime":1,"endTime":9,"samples":[1],"timeDeltas":[1],"nodes":[{"id":0,"callFrame":{}}`, "]}",
			func(i int) string { return fmt.Sprintf(`,{"id":%d,"callFrame":{"functionName":"%d"}}`, i+1, i) }),
	}
}

// costlyUploads returns forms as of Datadog's libraries of about size bytes, with their content types.
func costlyUploads(t testing.TB, size int) map[string][2]string {
	const event = `{"tags_profiler":"service:shop"}`
	pprof := costlyPayloads(size / 128)["samples"]
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
		"upload of a large one":   {"event.json", event, "a.pprof", costlyPayloads(size)["distinct stacks"]},
		"upload of folded stacks": {"event.json", event, "a.txt", costlyFormats(size)["folded"]},
	} {
		body, contentType := datadogUpload(t, parts...)
		uploads[name] = [2]string{string(body), contentType}
	}
	return uploads
}

// processBytes reads a line of /proc/self/status: VmRSS, or VmHWM for its peak.
func processBytes(t *testing.T, name string) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("no /proc/self/status here")
	}
	_, rest, found := strings.Cut(string(status), name+":")
	require.True(t, found)
	kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	require.NoError(t, err)
	return kilobytes << 10
}

// repeated is a reader that repeats text, so that a huge body takes no memory of the sender's.
type repeated struct {
	text []byte
	left int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.text[len(r.text)-1-(r.left-1)%len(r.text):])
	n = min(n, r.left)
	r.left -= n
	return n, nil
}

// hostileBody is a text that is sent several times, with or without its length.
type hostileBody struct {
	text     []byte
	times    int
	encoding string
	stated   bool
	// most bounds the growth of the process.
	most int64
}

// Eight senders of bodies that are far too large do not take much more memory than the limit allows, whatever they
// send.
func TestHostileSendersTakeLittleMemory(t *testing.T) {
	const (
		limit   = 8 * mib
		senders = 8
		// mostForProfiles is for bodies that are profiles, and mostForAnything for others.
		mostForAnything, mostForProfiles = 160 * mib, 320 * mib
	)
	gzipMember := pt.Gzip(make([]byte, 64*mib))
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	zstdFrame := encoder.EncodeAll(make([]byte, 64*mib), nil)
	require.NoError(t, encoder.Close())
	bodies := map[string]hostileBody{
		"100 MiB":                      {make([]byte, mib), 100, "", true, mostForAnything},
		"100 MiB, chunked":             {make([]byte, mib), 100, "", false, mostForAnything},
		"a gigabyte of gzip":           {gzipMember, 16, "", true, mostForAnything},
		"a gigabyte, sent with gzip":   {gzipMember, 16, "gzip", true, mostForAnything},
		"a gigabyte, sent with zstd":   {zstdFrame, 16, "zstd", true, mostForAnything},
		"just below the limit":         {make([]byte, limit-1), 1, "", true, mostForAnything},
		"just below, sent with gzip":   {pt.Gzip(make([]byte, limit-1)), 1, "gzip", true, mostForAnything},
		"a gzip in one sent with gzip": {pt.Gzip(gzipMember), 1, "gzip", true, mostForAnything},
	}
	// Profiles of the largest size, and with the largest number of samples.
	for name, size := range map[string]int{"samples": 500_000, "distinct stacks": 4 * mib, "labels": limit - 1,
		"text": 4 * mib} {
		if payload := costlyPayloads(size)[name]; payload != nil {
			bodies[fmt.Sprintf("%d bytes of %s", size, name)] = hostileBody{pt.Gzip(payload), 1, "", true,
				mostForProfiles}
		}
	}
	budget.SetMemoryLimit(400 * mib)
	defer budget.SetMemoryLimit(math.MaxInt64)
	f := startFixture(t, serverOnly+fmt.Sprintf("limits: {max_profile_bytes: %d}", limit))
	f.Next.Discard = true
	address := f.pushURL()
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			f.Next.Forget()
			debug.FreeOSMemory()
			before := processBytes(t, "VmRSS")
			if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
				t.Skip("the peak cannot be reset: ", err)
			}
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			var mu sync.Mutex
			codes := map[int]int{}
			var sending sync.WaitGroup
			for range senders {
				sending.Go(func() {
					request, err := http.NewRequest(http.MethodPost, address, &repeated{body.text, body.times * len(body.text)})
					if !assert.NoError(t, err) {
						return
					}
					if body.stated {
						request.ContentLength = int64(body.times * len(body.text))
					}
					request.Header.Set("Content-Encoding", body.encoding)
					response, err := client.Do(request)
					code := 0
					if err == nil {
						_ = response.Body.Close()
						code = response.StatusCode
					}
					mu.Lock()
					codes[code]++
					mu.Unlock()
				})
			}
			sending.Wait()
			grown := processBytes(t, "VmHWM") - before
			t.Logf("grew by %d MiB; answers: %v", grown/mib, codes)
			assert.Less(t, grown, body.most)
			assert.Zero(t, codes[0], "each sender gets an answer")
		})
	}
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
	bodies := costlyPayloads(size)
	maps.Copy(bodies, costlyFormats(size))
	uploads := costlyUploads(t, size)
	for name, upload := range uploads {
		bodies[name] = []byte(upload[0])
	}
	bodies["many parts"], _ = form(t, manyFiles(128, costlyPayloads(size / 128)["samples"])...)
	bodies["long headers"] = []byte("--x\r\nContent-Disposition: form-data; name=a; filename=b\r\n" +
		strings.Repeat("A: b\r\n", size/6) + "\r\n")
	bodies["many boundaries"] = bytes.Repeat([]byte("--x\r\n\r\n"), size/7)
	bodies["one boundary"] = bytes.Repeat([]byte("--x\r\n"), size/5)
	for name, body := range bodies {
		contentType := "multipart/form-data; boundary=x"
		if name == "many parts" {
			boundary, _, _ := bytes.Cut(body, []byte("\r\n"))
			contentType = "multipart/form-data; boundary=" + string(boundary[2:])
		} else if upload, isUpload := uploads[name]; isUpload {
			contentType = upload[1]
		} else if costlyPayloads(1)[name] != nil || costlyFormats(1)[name] != nil {
			contentType = ""
		}
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
	for _, body := range costlyFormats(4 << 10) {
		f.Add(body, "", "")
	}
	for _, upload := range costlyUploads(f, 4<<10) {
		f.Add([]byte(upload[0]), "", upload[1])
	}
	for _, path := range []string{
		"formats/gotrace/testdata/go1.22.trace.gz", "formats/jfr/testdata/jdk17.jfr.gz",
		"formats/cpuprofile/testdata/node20.cpuprofile",
		"formats/perfscript/testdata/burn.perf.txt",
	} {
		data, err := os.ReadFile(filepath.Join("..", "..", "internal", path))
		require.NoError(f, err)
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
