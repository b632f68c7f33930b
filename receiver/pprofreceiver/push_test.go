// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/push"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

const serverOnly = "server: {endpoint: 'localhost:0'}\n"

// answer and fileAnswer are the JSON of an answer.
type answer struct {
	Error string
	Files []fileAnswer
}

type fileAnswer struct{ File, Error string }

// send sends a body and returns the answer's status, headers and decoded JSON.
func send(t testing.TB, url string, body []byte, headers ...string) (int, http.Header, answer) {
	t.Helper()
	return ask(t, http.MethodPost, url, bytes.NewReader(body), headers...)
}

func ask(t testing.TB, method, url string, body io.Reader, headers ...string) (int, http.Header, answer) {
	t.Helper()
	got := collectortest.Ask(t, method, url, body, headers...)
	var a answer
	if got.Body != "" {
		require.NoError(t, json.Unmarshal([]byte(got.Body), &a), got.Body)
	}
	return got.StatusCode, got.Header, a
}

// accepted sends a body that must be accepted, and returns the answer. It is empty with 204, which this receiver's own
// paths have; other clients get 200.
func accepted(t testing.TB, url string, body []byte, headers ...string) (answer string) {
	t.Helper()
	code, _, answer := postRaw(t, url, body, headers...)
	want := http.StatusOK
	if strings.Contains(url, push.Path) || strings.Contains(url, push.ProfilesPath) {
		want = http.StatusNoContent
	}
	require.Equal(t, want, code, "%s: %s", url, answer)
	return answer
}

func TestPushEveryWayOfSending(t *testing.T) {
	f := startFixture(t, serverOnly)
	sent := sourcetest.Captured(t, "go-cpu-labels.pb.gz")
	plain := profiletest.Gunzip(t, sent)
	encoder, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	zstandard := encoder.EncodeAll(plain, nil)
	require.NoError(t, encoder.Close())

	want, _, err := decode.Decode(sent, decode.Options{})
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		body    []byte
		headers []string
	}{
		"gzip":                           {body: sent},
		"plain":                          {body: plain},
		"zstd":                           {body: zstandard},
		"plain, sent with gzip":          {profiletest.Gzip(plain), []string{"Content-Encoding", "gzip"}},
		"gzip, sent with gzip":           {profiletest.Gzip(sent), []string{"Content-Encoding", "gzip"}},
		"plain, sent with zstd":          {zstandard, []string{"Content-Encoding", "zstd"}},
		"plain, sent with GZIP":          {profiletest.Gzip(plain), []string{"Content-Encoding", "GZIP"}},
		"plain, sent with x-gzip":        {profiletest.Gzip(plain), []string{"Content-Encoding", "x-gzip"}},
		"Identity":                       {plain, []string{"Content-Encoding", "Identity"}},
		"identity":                       {plain, []string{"Content-Encoding", "identity"}},
		"as curl --data-binary sends it": {sent, []string{"Content-Type", "application/x-www-form-urlencoded"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(f.Next.All())
			accepted(t, f.pushURL(), tc.body, tc.headers...)
			got := f.Next.All()
			require.Len(t, got, before+1)
			pd := got[before]
			assert.Equal(t, map[string]any{"service.name": "unknown_service"}, sourcetest.ResourceOf(t, pd))
			scope := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope()
			assert.Equal(t, metadata.ScopeName, scope.Name())
			assert.Equal(t, "1.2.3", scope.Version())

			// Apart from resource and scope, it is what pprof/decode returns.
			pd.ResourceProfiles().At(0).Resource().Attributes().Clear()
			scope.SetName("")
			scope.SetVersion("")
			assert.NoError(t, profiletest.Equal(want, pd))
		})
	}
}

func TestPushIdentity(t *testing.T) {
	f := startFixture(t,
		serverOnly+"resource_attributes: {deployment.environment.name: dev, shard: 7, service.name: configured, zone: a}\n")
	body := sourcetest.Captured(t, "go-heap.pb.gz")
	accepted(t,
		f.pushURL()+
			"?service.name=shop&service.namespace=eu&service.version=2&service.instance.id=x%20y&attr.region=eu&attr.zone=b",
		body)
	assert.Equal(t, map[string]any{
		"service.name": "shop", "service.namespace": "eu", "service.version": "2", "service.instance.id": "x y",
		"region": "eu", "zone": "b", "deployment.environment.name": "dev", "shard": int64(7),
	}, sourcetest.ResourceOf(t, f.Await(1)[0]))

	// Without stated attributes, configured ones win over those of the receiver.
	accepted(t, f.pushURL(), body)
	assert.Equal(t, "configured", sourcetest.ResourceOf(t, f.Await(2)[1])["service.name"])
}

func TestPushAnswers(t *testing.T) {
	const limits = "limits: {max_profile_bytes: 200000}\n"
	f := startFixture(t, "server: {endpoint: 'localhost:0', max_request_body_size: 100000}\n"+limits)
	good := sourcetest.Captured(t, "go-heap.pb.gz")
	otlp, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(profiletest.New().Resource("service.name", "shop").
		Profile("cpu", "nanoseconds").Sample(profiletest.Value(1, "main")).Build())
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		query, method string
		body          []byte
		headers       []string
		code          int
		reason        ingest.Reason
		says          string
	}{
		"a GET": {method: http.MethodGet, code: 405, reason: ingest.BadRequest, says: "use POST"},
		"an unknown key": {query: "?name=shop", body: good, code: 400, reason: ingest.BadRequest,
			says: `"name" is unknown`},
		"an attribute without a name": {query: "?attr.=shop", body: good, code: 400, reason: ingest.BadRequest,
			says: `"attr." is unknown`},
		"a key twice": {query: "?service.name=a&service.name=b", body: good, code: 400,
			reason: ingest.BadRequest, says: "more than once"},
		"a key under two names": {query: "?service.name=a&attr.service.name=b", body: good, code: 400,
			reason: ingest.BadRequest, says: "more than once"},
		"a name without text": {query: "?service.name=", body: good, code: 400, reason: ingest.BadRequest,
			says: "must not be empty"},
		"a value that is not UTF-8": {query: "?service.name=%ff", body: good, code: 400, reason: ingest.BadRequest,
			says: "not UTF-8"},
		"a malformed query": {query: "?service.name=%zz", body: good, code: 400, reason: ingest.BadRequest,
			says: "query"},
		"a page of another origin": {body: good, headers: []string{"Origin", "https://evil.example"}, code: 403,
			reason: ingest.BadRequest, says: "`cors.allowed_origins`"},
		"no body": {code: 400, reason: ingest.Empty, says: "empty"},
		"a text dump": {body: sourcetest.Captured(t, "go-goroutine-debug1.txt"), code: 415,
			reason: ingest.NotPprof, says: "seems to be"},
		"a heap snapshot": {body: []byte(`{"snapshot":{"meta":{}},"nodes":[3,0]}`), code: 415,
			reason: ingest.NotPprof, says: "node --heap-prof"},
		"a YAML file": {body: []byte("replicas: 3\nimage: shop\nports: [80]"), code: 400,
			reason: ingest.NotPprof, says: "seems to be YAML"},
		"metrics": {body: []byte("# TYPE up gauge\nup 1\nup{job=\"a;b\"} 1\n"), code: 400,
			reason: ingest.NotPprof, says: "seems to be metrics"},
		"a message of the program": {body: []byte("Could not enable CPU profiling: cpu profiling already in use\n"),
			code: 400, reason: ingest.NotPprof, says: `text: "Could not enable CPU profiling: cpu profiling already in use"; accepted are [pprof`},
		"OTLP":            {body: otlp, code: 400, reason: ingest.NotPprof, says: "to /v1development/profiles"},
		"OTLP, as a file": {body: profiletest.Gzip(otlp), code: 400, reason: ingest.NotPprof, says: "on port 4318"},
		"OTLP in JSON": {body: []byte(`{"resourceProfiles":[]}`), code: 415, reason: ingest.NotPprof,
			says: "to /v1development/profiles"},
		"bytes of no format": {body: []byte{0x07, 0xff, 0x07, 0xff}, code: 400, reason: ingest.NotPprof,
			says: "wire type 7 is not known; accepted are [pprof"},
		"perf report with its header": {body: []byte("# ========\n# captured on    : Fri Nov 27\n#" + strings.Repeat(" x",
			5000) + "\n# Samples: 2  of event 'cycles'\n#\n    99.00%  dd\n"), code: 400, reason: ingest.NotPprof, says: "send what perf script prints"},
		"perf without addresses": {query: "?format=perf_script", body: []byte("              dd 24957\n"), code: 400,
			reason: ingest.NotPprof, says: "-F comm,pid,tid,time"},
		"a log": {body: []byte("2026-01-02 03:04:05 started; pid 12\n"), code: 400,
			reason: ingest.NotPprof, says: "seems to be a log"},
		"a report": {body: []byte("Type: cpu\nShowing nodes accounting for 1s\nmain 12\n"), code: 400,
			reason: ingest.NotPprof, says: "seems to be a text report"},
		"a JSON error": {body: []byte(`{"code": 404}`), code: 400, reason: ingest.NotPprof,
			says: "seems to be JSON (an error message?)"},
		"an error page": {body: []byte("<html>404</html>"), code: 400, reason: ingest.NotPprof,
			says: "seems to be HTML"},
		"a gperftools file": {body: sourcetest.Captured(t, "cpp-gperftools-legacy.prof"), code: 415,
			reason: ingest.NotPprof, says: "seems to be"},
		"a truncated execution trace": {body: sourcetest.Captured(t, "go-exec.trace")[:50000], code: 400,
			reason: ingest.NotPprof, says: "read go_trace"},
		"a truncated gzip": {body: good[:len(good)/2], code: 400, reason: ingest.NotPprof,
			says: "truncated gzip"},
		"a damaged gzip of a trace of PyTorch": {query: "?format=trace_events", body: []byte("\x1f\x8b damaged"), code: 400,
			reason: ingest.Unreadable, says: "damaged"},
		"a truncated gzip of a trace of PyTorch": {query: "?format=trace_events",
			body: profiletest.Gzip([]byte(`{"traceEvents":[{"ph":"X","cat":"cpu_op","ts":1,"dur":1}]}`))[:50], code: 400,
			reason: ingest.Unreadable, says: "truncated"},
		"a damaged gzip of folded stacks": {query: "?format=folded", body: []byte("\x1f\x8b damaged"), code: 400,
			reason: ingest.Unreadable, says: "damaged"},
		"a bomb": {body: profiletest.Gzip(make([]byte, 1<<20)), code: 413, reason: ingest.TooLarge,
			says: "limit"},
		"a bomb, as Content-Encoding": {body: profiletest.Gzip(make([]byte, 1<<20)),
			headers: []string{"Content-Encoding", "gzip"}, code: 413, reason: ingest.TooLarge, says: "larger than 100000 bytes"},
		"a large body": {body: make([]byte, 100001), code: 413, reason: ingest.TooLarge,
			says: "larger than 100000 bytes"},
		"an unknown encoding": {body: good, headers: []string{"Content-Encoding", "br"}, code: 415,
			reason: ingest.Encoding, says: "gzip, zstd"},
		"an encoding it does not have": {body: profiletest.Gunzip(t, good), headers: []string{"Content-Encoding", "gzip"},
			code: 400, reason: ingest.Unreadable, says: "gzip"},
		"a truncated encoding": {body: profiletest.Gzip(good)[:500], headers: []string{"Content-Encoding", "gzip"},
			code: 400, reason: ingest.Unreadable, says: "read body"},
		"a form without a boundary": {body: good, headers: []string{"Content-Type", "multipart/form-data"}, code: 400,
			reason: ingest.BadRequest, says: "boundary"},
		"a malformed form": {body: good, headers: []string{"Content-Type", "multipart/form-data; boundary=x"}, code: 400,
			reason: ingest.Empty, says: "no files"},
		"an unknown path": {query: "/else", body: good, code: 404, says: "/v1/pprof"},
	} {
		t.Run(name, func(t *testing.T) {
			before := f.Sum(sourcetest.MetricRejected, "reason", string(tc.reason), "source", "server")
			method := cmp.Or(tc.method, http.MethodPost)
			code, header, a := ask(t, method, f.pushURL()+tc.query, bytes.NewReader(tc.body), tc.headers...)
			assert.Equal(t, tc.code, code)
			assert.Contains(t, a.Error, tc.says)
			assert.Equal(t, "application/json", header.Get("Content-Type"))
			if tc.reason != "" {
				assert.Equal(t, before+1, f.Sum(sourcetest.MetricRejected, "reason", string(tc.reason), "source", "server"))
			}
			if code == http.StatusMethodNotAllowed {
				assert.Equal(t, "POST", header.Get("Allow"))
			}

			// The next request works.
			accepted(t, f.pushURL(), good)
		})
	}
	assert.Equal(t, f.Next.Attempts(), len(f.Next.All()))
}

// A body whose stated length is too large is refused before it arrives.
func TestPushWithATooLargeContentLength(t *testing.T) {
	f := startFixture(t, "server: {endpoint: 'localhost:0', max_request_body_size: 1000}\n")
	connection, err := net.Dial("tcp", f.pushServer().Addr().String())
	require.NoError(t, err)
	defer func() { assert.NoError(t, connection.Close()) }()
	require.NoError(t, connection.SetDeadline(time.Now().Add(sourcetest.Patience)))
	_, err = io.WriteString(connection, "POST "+push.Path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	require.NoError(t, err)
	defer func() { assert.NoError(t, response.Body.Close()) }()
	assert.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
}

func TestPushKeepsTheOriginalPayload(t *testing.T) {
	f := startFixture(t, serverOnly+"include_original_payload: true")
	sent := sourcetest.Captured(t, "go-heap.pb.gz")
	accepted(t, f.pushURL(), sent)
	first := f.Next.All()[0].ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	assert.Equal(t, "pprof", first.OriginalPayloadFormat())
	assert.Equal(t, sent, first.OriginalPayload().AsRaw())
}

// A pprof without samples is accepted, and there is nothing to deliver. Faults that lose nothing are counted.
func TestPushOddProfiles(t *testing.T) {
	f := startFixture(t, serverOnly)
	const emptyString = "\x32\x00" // string_table: [""]
	accepted(t, f.pushURL(), []byte(emptyString))
	assert.Zero(t, f.Next.Attempts())

	const oneSample = "\x12\x02\x12\x00" // sample: [{value: []}]
	accepted(t, f.pushURL(), []byte(oneSample+emptyString))
	assert.Equal(t, 1, f.Await(1)[0].SampleCount())
	assert.Equal(t, int64(1), f.Sum(sourcetest.MetricRepaired, "fault", "missing_sample_types"))

	// sample_type: [{}], sample: [{location_id: [7]}]
	const unknownLocation = "\x0a\x02\x08\x00\x12\x05\x0a\x01\x07\x12\x00"
	status, _, answer := postRaw(t, f.pushURL(), []byte(unknownLocation+oneSample+emptyString))
	assert.Equal(t, http.StatusOK, status)
	assert.JSONEq(t, `{"warning": "samples were dropped, since they cannot be read: unknown_location: 1"}`, answer)
	assert.Equal(t, 1, f.Await(2)[1].SampleCount())
	assert.Equal(t, int64(1), f.Sum(sourcetest.MetricDropped, "reason", "unknown_location"))

	status, _, answer = postRaw(t, f.pushURL(), []byte(unknownLocation+emptyString))
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, answer, "none of its samples can be read: unknown_location: 1")
	assert.Equal(t, int64(1), f.Sum(sourcetest.MetricRejected, "reason", "not_pprof"))
	assert.Equal(t, 2, f.Next.Attempts())
}

// The sender can state what values are, of every format. Without a time, a profile ends when it arrives.
func TestPushedTemporality(t *testing.T) {
	stacks := func(f *fixture, query string) pprofile.Profiles {
		accepted(t, f.profilesURL()+"?service.name=shop&sample_type=odd/count"+query,
			[]byte("main;work 3\n"))
		all := f.Next.All()
		return all[len(all)-1]
	}
	f := startFixture(t, serverOnly)
	for query, want := range map[string]kind.Values{
		"&temporality=delta": kind.Delta, "&temporality=gauge": kind.Gauge, "&temporality=cumulative": kind.Cumulative,
		"": kind.Gauge, // an unknown type without a duration
	} {
		pd := stacks(f, query)
		require.NoError(t, profiletest.Check(pd))
		p := profiletest.ProfileAt(pd, 0)
		require.Equal(t, want, kind.ValuesOfProfile(p, pd.Dictionary()), query)
		require.WithinDuration(t, time.Now(), p.Time().AsTime(), sourcetest.Patience)
	}
	code, _, answer := postRaw(t, f.pushURL()+"?temporality=total", []byte("x"))
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, answer, `query key \"temporality\" must be delta, gauge or cumulative, found \"total\"`)
}

// A pprof of several kinds is named after all of them: .NET's default type is its last, lock_time.
func TestPushedPprofOfSeveralKinds(t *testing.T) {
	mixed := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}, {Type: "exception", Unit: "count"},
			{Type: "lock_time", Unit: "nanoseconds"}},
		Sample: []*profile.Sample{{Value: []int64{1, 2, 3}}},
	}
	var b bytes.Buffer
	require.NoError(t, mixed.Write(&b))
	f := startFixture(t, serverOnly)
	accepted(t, f.pushURL()+"?service.name=shop", b.Bytes())
	scope := f.Await(1)[0].ResourceProfiles().At(0).ScopeProfiles().At(0).Scope()
	require.Equal(t, kind.ProcessCPU, kind.Stated(scope.Attributes()))
}
