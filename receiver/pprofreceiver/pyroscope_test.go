// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/pyroscope-go"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // a compressor for the client
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

const connectPath = "/push.v1.PusherService/Push"

func (f *fixture) base() string { return "http://" + f.pushServer().Addr().String() }

// postRaw posts a body and returns the status, the headers and the body of the answer.
func postRaw(t testing.TB, url string, body []byte, headers ...string) (int, http.Header, string) {
	t.Helper()
	a := collectortest.Ask(t, http.MethodPost, url, bytes.NewReader(body), headers...)
	return a.StatusCode, a.Header, a.Body
}

// Requests of each of Pyroscope's clients arrive with their names, labels, scopes and times.
func TestRequestsOfPyroscopesClients(t *testing.T) {
	requests := profiletest.Glob(t, "../../testdata/pyroscope/*/request-*.json")
	names := map[string]bool{}
	for _, path := range requests {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			captured := readRequest(t, path)
			f := startFixture(t, serverOnly)
			// @pyroscope/nodejs appends its path to the slash of the configured URL.
			var headers []string
			for _, name := range []string{"Content-Type", "Content-Encoding", "Connect-Protocol-Version", "User-Agent"} {
				if values := captured.Headers[name]; len(values) > 0 {
					headers = append(headers, name, values[0])
				}
			}
			require.Empty(t, accepted(t, f.base()+"/"+captured.Path+"?"+captured.Query, captured.body, headers...))
			require.NotEmpty(t, f.Next.All())
			for _, pd := range f.Next.All() {
				rp := pd.ResourceProfiles().At(0)
				attributes := rp.Resource().Attributes().AsRaw()
				assert.Contains(t, attributes["service.name"], "demo.")
				assert.Equal(t, "eu-demo-1", attributes["region"])
				assert.NotContains(t, attributes, "__session_id__")
				assert.NotContains(t, attributes, "otel.scope.name")
				assert.NotContains(t, attributes, "__delta__")
				scope := rp.ScopeProfiles().At(0)
				// The SDK for Node.js states its scope since 0.6.
				assert.Equal(t, strings.Contains(captured.Query, "otel.scope.name"),
					strings.Contains(scope.Scope().Name(), "com.grafana.pyroscope/"))
				name := kind.Stated(scope.Scope().Attributes())
				assert.NotEmpty(t, name)
				names[name] = true
				for _, profile := range scope.Profiles().All() {
					assert.Greater(t, uint64(profile.Time()), uint64(1740000000e9))
					assert.Positive(t, profile.DurationNano())
				}
			}
		})
	}
	assert.Subset(t, names, map[string]bool{"process_cpu": true, "memory": true, "goroutine": true, "block": true,
		"mutex": true, "wall": true})
}

// The real client, with all of its profiles: each arrives under its name, with its types, as a delta.
func TestPyroscopeGo(t *testing.T) {
	spin(t)
	f := startFixture(t, serverOnly)
	defer runtime.SetMutexProfileFraction(runtime.SetMutexProfileFraction(1))
	// the profile stays for the tests after this one: keep it small
	runtime.SetBlockProfileRate(int(100 * time.Microsecond))
	defer runtime.SetBlockProfileRate(0)
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: "shop", ServerAddress: f.base(), Tags: map[string]string{"region": "eu"},
		UploadRate: 200 * time.Millisecond,
		ProfileTypes: []pyroscope.ProfileType{
			pyroscope.ProfileCPU, pyroscope.ProfileGoroutines, pyroscope.ProfileInuseSpace, pyroscope.ProfileInuseObjects,
			pyroscope.ProfileAllocSpace, pyroscope.ProfileAllocObjects, pyroscope.ProfileMutexCount,
			pyroscope.ProfileMutexDuration,
			pyroscope.ProfileBlockCount, pyroscope.ProfileBlockDuration,
		},
		DisableGCRuns: true,
	})
	require.NoError(t, err)
	want := map[string][]string{
		"process_cpu": {"cpu", "samples"}, "goroutine": {"goroutine"}, "mutex": {"delay", "contentions"},
		"block":  {"delay", "contentions"},
		"memory": {"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"},
	}
	types := map[string]map[string]bool{}
	require.Eventually(t, func() bool {
		contend()
		for _, pd := range f.Next.All() {
			rp := pd.ResourceProfiles().At(0)
			attributes := rp.Resource().Attributes().AsRaw()
			require.Equal(t, "shop", attributes["service.name"])
			require.Equal(t, "eu", attributes["region"])
			name := kind.Stated(rp.ScopeProfiles().At(0).Scope().Attributes())
			if types[name] == nil {
				types[name] = map[string]bool{}
			}
			for _, profile := range rp.ScopeProfiles().At(0).Profiles().All() {
				types[name][pd.Dictionary().StringTable().At(int(profile.SampleType().TypeStrindex()))] = true
				require.Positive(t, profile.DurationNano(), "a delta has a duration")
			}
		}
		for name, of := range want {
			for _, typ := range of {
				if !types[name][typ] {
					return false
				}
			}
		}
		return true
	}, sourcetest.Patience, 10*time.Millisecond, "%v", types)
	require.NoError(t, profiler.Stop())
	http.DefaultClient.CloseIdleConnections()
	require.Len(t, types, len(want))
}

func pushRequest(t testing.TB, pprofs ...[]byte) *pushv1.PushRequest {
	t.Helper()
	series := &pushv1.RawProfileSeries{Labels: []*typesv1.LabelPair{
		{Name: "__name__", Value: "process_cpu"}, {Name: "service_name", Value: "shop"}, {Name: "region", Value: "eu"},
	}}
	for _, data := range pprofs {
		series.Samples = append(series.Samples, &pushv1.RawSample{RawProfile: data, ID: "x"})
	}
	return &pushv1.PushRequest{Series: []*pushv1.RawProfileSeries{series}}
}

func requireShop(t *testing.T, f *fixture, want int) {
	t.Helper()
	require.Len(t, f.Next.All(), want)
	for _, pd := range f.Next.All() {
		rp := pd.ResourceProfiles().At(0)
		require.Equal(t, map[string]any{"service.name": "shop", "region": "eu"}, rp.Resource().Attributes().AsRaw())
		require.Equal(t, kind.ProcessCPU, kind.Stated(rp.ScopeProfiles().At(0).Scope().Attributes()))
	}
}

// push.v1 in every way that clients use: Connect with protobuf and JSON, raw protobuf, gzip, gRPC.
func TestPushV1(t *testing.T) {
	data := sourcetest.Captured(t, "go-cpu-labels.pb.gz")
	body, err := proto.Marshal(pushRequest(t, data, profiletest.Gunzip(t, data)))
	require.NoError(t, err)
	f := startFixture(t, serverOnly)
	code, header, answer := postRaw(t, f.base()+connectPath, body, "Content-Type", "application/proto",
		"Connect-Protocol-Version", "1")
	require.Equal(t, http.StatusOK, code, answer)
	require.Equal(t, "application/proto", header.Get("Content-Type"))
	require.Empty(t, answer)
	requireShop(t, f, 2)

	accepted(t, f.base()+connectPath, profiletest.Gzip(body), "Content-Type", "application/proto",
		"Content-Encoding", "gzip")
	requireShop(t, f, 4)

	text, err := protojson.Marshal(pushRequest(t, data))
	require.NoError(t, err)
	require.JSONEq(t, "{}", accepted(t, f.base()+connectPath, text, "Content-Type", "application/json"))
	requireShop(t, f, 5)

	client, err := grpc.NewClient(f.pushServer().Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer client.Close()
	for _, options := range [][]grpc.CallOption{nil, {grpc.UseCompressor("gzip")}} {
		require.NoError(t, client.Invoke(t.Context(), connectPath, pushRequest(t, data), &pushv1.PushResponse{}, options...))
	}
	requireShop(t, f, 7)
	err = client.Invoke(t.Context(), connectPath, pushRequest(t, []byte("no pprof, ä %")), &pushv1.PushResponse{})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	f.Next.RefuseWith(errors.New("queue is full"))
	err = client.Invoke(t.Context(), connectPath, pushRequest(t, data), &pushv1.PushResponse{})
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Contains(t, err.Error(), "queue is full")
}

// Text formats: the types of values follow from units and sampleRate.
func TestTextFormatsOfPyroscope(t *testing.T) {
	for name, tt := range map[string]struct{ query, body, want string }{
		"folded": {"format=folded&sampleRate=250", "main;work 3\n",
			"time 1795167161000000000 ns\n      duration 4000000000 ns\n      period 4000000 cpu in nanoseconds\n      sample 3"},
		"groups":     {"format=groups&units=bytes", "main;work 3\n", "alloc_space in bytes"},
		"lines":      {"format=lines", "main;work\nmain;work\n", "sample 2\n        work\n        main"},
		"goroutines": {"format=folded&units=goroutines", "main 7", "goroutine in count"},
		"average":    {"format=folded&units=bytes&aggregationType=average", "main 7", "inuse_space in bytes"},
		"an average of another unit": {"format=folded&units=widgets&aggregationType=average", "main 7",
			`otlp.aggregation_temporality="gauge"`},
		"a rate with a fraction": {"sampleRate=62.5", "main 7", "period 16000000 cpu in nanoseconds"},
		"speedscope":             {"format=speedscope", speedscopeFile, "profile wall in nanoseconds"},
		"speedscope by content":  {"", speedscopeFile, "sample 10\n        main\n      sample 20\n        work\n        main"},
		// The example of Pyroscope's documentation, a printf into curl.
		"no format": {"", "foo;bar 100\n foo;baz 200",
			"sample 100\n        bar\n        foo\n      sample 200\n        baz\n        foo"},
		"groups only": {"format=groups", "foo;bar 100", "sample 100"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFixture(t, serverOnly)
			for _, body := range [][]byte{[]byte(tt.body), profiletest.Gzip([]byte(tt.body))} {
				accepted(t, f.base()+"/ingest?name=shop&from=1795167161&until=1795167165&"+tt.query, body)
			}
			require.Len(t, f.Next.All(), 2)
			assert.Contains(t, profiletest.Render(f.Next.All()[0]), tt.want)
			require.NoError(t, profiletest.Equal(f.Next.All()[0], f.Next.All()[1]))
		})
	}
}

const speedscopeFile = `{"$schema": "https://www.speedscope.app/file-format-schema.json",
	"shared": {"frames": [{"name": "main"}, {"name": "work"}]}, "profiles": [{"type": "sampled", "name": "x",
	"unit": "nanoseconds", "startValue": 0, "endValue": 30, "samples": [[0], [0, 1]], "weights": [10, 20]}]}`

// A client that speaks another protocol of RPC would not read the answer: it gets none that looks like success.
func TestOtherProtocolsOfRPC(t *testing.T) {
	data := sourcetest.Captured(t, "go-cpu-labels.pb.gz")
	message, err := proto.Marshal(pushRequest(t, data))
	require.NoError(t, err)
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	f := startFixture(t, serverOnly)
	var http2 http.Protocols
	http2.SetUnencryptedHTTP2(true)
	for _, client := range []*http.Client{http.DefaultClient, {Transport: &http.Transport{Protocols: &http2}}} {
		for _, kind := range []string{"application/grpc-web+proto", "application/grpc-web-text", "application/grpc+json",
			"application/connect+proto"} {
			response, err := client.Post(f.base()+connectPath, kind, bytes.NewReader(body))
			require.NoError(t, err)
			answer, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, http.StatusUnsupportedMediaType, response.StatusCode, kind)
			require.Contains(t, string(answer), kind+" over HTTP/")
		}
		client.CloseIdleConnections()
	}
	require.Zero(t, f.Next.Attempts())
}

// The application's name can end in the type of the values, which is not part of the service's name. The types are
// those of convertMetadata in Pyroscope's pkg/ingester/pyroscope/ingest_adapter.go; those of clocks have the period of
// sampleRate.
func TestTypesInNames(t *testing.T) {
	const cpu, wall = "samples in count, cpu 4000000", "samples in count, wall 4000000"
	want := map[string]string{
		"shop.cpu": "process_cpu: " + cpu, "shop.itimer": "process_cpu: " + cpu, "shop.wall": "wall: " + wall,
		"shop.seconds":      "wall: " + wall,
		"shop.milliseconds": "wall: " + wall, "shop.microseconds": "wall: " + wall, "shop.nanoseconds": "wall: " + wall,
		"shop.inuse_objects": "memory: inuse_objects in count", "shop.inuse_space": "memory: inuse_space in bytes",
		"shop.alloc_objects": "memory: alloc_objects in count", "shop.alloc_space": "memory: alloc_space in bytes",
		"shop.alloc_in_new_tlab_objects":  "memory: alloc_in_new_tlab_objects in count",
		"shop.alloc_in_new_tlab_bytes":    "memory: alloc_in_new_tlab_bytes in bytes",
		"shop.alloc_outside_tlab_objects": "memory: alloc_outside_tlab_objects in count",
		"shop.alloc_outside_tlab_bytes":   "memory: alloc_outside_tlab_bytes in bytes",
		"shop.live":                       "memory: live in count", "shop.bytes": "memory: samples in bytes",
		"shop.goroutines":  "goroutine: goroutine in count",
		"shop.mutex_count": "mutex: contentions in count", "shop.mutex_duration": "mutex: delay in nanoseconds",
		"shop.block_count": "block: contentions in count", "shop.block_duration": "block: delay in nanoseconds",
		"shop.lock_count": "block: contentions in count", "shop.lock_duration": "block: delay in nanoseconds",
		"shop.exceptions": "exceptions: samples in count",
	}
	require.Len(t, want, 25)
	want["shop"] = "process_cpu: " + cpu
	f := startFixture(t, serverOnly)
	ingested := func(name, query string) (service, types string) {
		accepted(t, f.base()+"/ingest?name="+url.QueryEscape(name)+query, []byte("main;work 70\nmain 30\n"))
		all := f.Next.All()
		pd := all[len(all)-1]
		rp := pd.ResourceProfiles().At(0)
		sp := rp.ScopeProfiles().At(0)
		text := func(index int32) string { return pd.Dictionary().StringTable().At(int(index)) }
		profile := sp.Profiles().At(0)
		types = fmt.Sprintf("%s: %s in %s", kind.Stated(sp.Scope().Attributes()),
			text(profile.SampleType().TypeStrindex()), text(profile.SampleType().UnitStrindex()))
		if profile.Period() != 0 {
			types += fmt.Sprintf(", %s %d", text(profile.PeriodType().TypeStrindex()), profile.Period())
		}
		return kind.Service(rp.Resource().Attributes()), types
	}
	for name, types := range want {
		service, got := ingested(name+"{region=eu}", "&format=folded&sampleRate=250")
		assert.Equal(t, "shop", service, name)
		assert.Equal(t, types, got, name)
	}
	service, got := ingested("shop.alloc_space", "&units=objects")
	assert.Equal(t, "shop", service)
	assert.Equal(t, want["shop.alloc_space"], got, "the name wins over the units")
	service, got = ingested("shop.wall{service_name=cart.wall}", "&sampleRate=250")
	assert.Equal(t, "cart.wall", service, "a label is no application")
	assert.Equal(t, want["shop.wall"], got)
	for _, name := range []string{"shop.eu", ".wall", "wall"} {
		service, _ = ingested(name, "")
		assert.Equal(t, name, service, "no type")
	}
}

// Old versions of pyroscope-go send the last totals beside the new ones: the difference arrives.
func TestPreviousTotalsAreSubtracted(t *testing.T) {
	heap := sourcetest.Captured(t, "go-heap.pb.gz")
	body, contentType := form(t, "=profile", heap, "=prev_profile", heap)
	f := startFixture(t, serverOnly)
	accepted(t, f.base()+"/ingest?name=shop&from=1795167161&until=1795167165", body, "Content-Type",
		contentType)
	require.Len(t, f.Next.All(), 1)
	text := profiletest.Render(f.Next.All()[0])
	require.Contains(t, text, "inuse_space")
	require.NotContains(t, text, "alloc_space", "nothing was allocated in between")
}

// Pyroscope's Java agent sends a recording and the labels that its events refer to.
func TestJavaAgentOfPyroscope(t *testing.T) {
	const testdata = "../../internal/formats/jfr/testdata/"
	read := func(name string) []byte {
		return profiletest.FileBytes(t, testdata+name)
	}
	var names []string
	f := startFixture(t, serverOnly)
	url := f.base() +
		"/ingest?format=jfr&name=shop%7Bregion%3Deu%7D&from=1744271337&until=1744271340&spyName=javaspy&sampleRate=250"
	body, contentType := form(t, "=jfr", read("new_spancontext.jfr.gz"), "=labels", read("new_spancontext.labels.gz"))
	accepted(t, url, body, "Content-Type", contentType)
	require.Len(t, f.Next.All(), 1)
	rp := f.Next.All()[0].ResourceProfiles().At(0)
	require.Equal(t, map[string]any{"service.name": "shop", "region": "eu"}, rp.Resource().Attributes().AsRaw())
	text := profiletest.Render(f.Next.All()[0])
	require.Contains(t, text, `pprof.scope.profile_name="process_cpu"`)
	require.Contains(t, text, "period 10000000 cpu in nanoseconds", "the period of the recording")
	require.Contains(t, text, `{dyn2="v2", profile_id="00000000000000ef", span_name="Fibonachi", thread.id=31`)

	// Without an interval in the recording, sampleRate counts. A form without labels is fine, and the plain body too.
	body, contentType = form(t, "=jfr", read("wall_tick_sample.jfr.gz"))
	accepted(t, url, body, "Content-Type", contentType)
	require.Contains(t, profiletest.Render(f.Next.All()[1]), "period 4000000 wall in nanoseconds")
	accepted(t, url, read("wall_tick_sample.jfr.gz"))
	require.NoError(t, profiletest.Equal(f.Next.All()[1], f.Next.All()[2]))

	// Waits for monitors and parked threads have the same types; their scopes tell them apart.
	body, contentType = form(t, "=jfr", read("jdk17.jfr.gz"))
	accepted(t, url, body, "Content-Type", contentType)
	for _, sp := range f.Next.All()[3].ResourceProfiles().At(0).ScopeProfiles().All() {
		names = append(names, kind.Stated(sp.Scope().Attributes()))
	}
	require.ElementsMatch(t, []string{"process_cpu", "memory", "mutex", "block"}, names)

	for name, labels := range map[string][]byte{"not gzip": []byte("\x1f\x8bhello"), "not labels": []byte("hello")} {
		body, contentType = form(t, "=jfr", read("wall_tick_sample.jfr.gz"), "=labels", labels)
		code, _, answer := postRaw(t, url, body, "Content-Type", contentType)
		require.Equal(t, http.StatusBadRequest, code, name)
		require.Contains(t, answer, "labels")
	}
	require.Len(t, f.Next.All(), 4)
}

func TestAnswersToPyroscopesClients(t *testing.T) {
	data := sourcetest.Captured(t, "go-cpu-labels.pb.gz")
	push, err := proto.Marshal(pushRequest(t, data))
	require.NoError(t, err)
	two, twoType := form(t, "a", data, "b", data)
	for name, tt := range map[string]struct {
		path    string
		body    []byte
		next    error
		code    int
		connect string
		message string
	}{
		"no name":   {"/ingest", data, nil, 400, "invalid_argument", "no name="},
		"semicolon": {"/ingest?name=a&from=1;2", data, nil, 400, "invalid_argument", "semicolon"},
		"percent":   {"/ingest?name=a&until=%zz", data, nil, 400, "invalid_argument", "invalid URL escape"},
		"trie": {"/ingest?name=a&format=trie", data, nil, 415, "unimplemented",
			"use one of pprof, jfr, folded, lines, groups, speedscope"},
		"tree": {"/ingest?name=a&format=tree", data, nil, 415, "unimplemented",
			"use one of pprof, jfr, folded, lines, groups, speedscope"},
		"not speedscope": {"/ingest?name=a&format=speedscope", data, nil, 400, "invalid_argument", "speedscope"},
		"not jfr": {"/ingest?name=a&format=jfr", data, nil, 400, "invalid_argument",
			"not a recording of Java Flight Recorder"},
		"not pprof":        {"/ingest?name=a", []byte("<html>"), nil, 400, "invalid_argument", "HTML"},
		"trie by its type": {"/ingest?name=a", []byte("\x00\x01"), nil, 415, "unimplemented", `format="trie"`},
		"not folded": {"/ingest?name=a&format=folded", []byte("<html>"), nil, 400, "invalid_argument",
			"no line is a stack"},
		"two profiles": {"/ingest?name=a", two, nil, 400, "invalid_argument", "a request of its own"},
		"empty":        {"/ingest?name=a", nil, nil, 400, "invalid_argument", "empty"},
		"not a push":   {connectPath, []byte("hello"), nil, 400, "invalid_argument", "push.v1"},
		"too large":    {connectPath, make([]byte, 3<<20), nil, 413, "invalid_argument", "larger"},
		"busy":         {connectPath, push, errors.New("queue is full"), 503, "unavailable", "queue is full"},
		"throttled": {connectPath, push, consumererror.NewOTLPHTTPError(errors.New("slow down"), 429), 429,
			"resource_exhausted", "slow down"},
		"never welcome": {connectPath, push, consumererror.NewPermanent(errors.New("no")), 422, "invalid_argument", "no"},
		"debug info": {"/debuginfo.v1alpha1.DebuginfoService/ShouldInitiateUpload", nil, nil, 404, "unimplemented",
			"not stored here"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFixture(t, serverOnly+"limits: {max_profile_bytes: 2097152}\n")
			if tt.next != nil {
				f.Next.RefuseWith(tt.next)
			}
			kind := "text/plain"
			switch {
			case strings.HasPrefix(name, "trie"):
				kind = "binary/octet-stream+trie"
			case name == "two profiles":
				kind = twoType
			}
			code, header, answer := postRaw(t, f.base()+tt.path, tt.body, "Content-Type", kind)
			assert.Equal(t, tt.code, code)
			var said struct{ Code, Message string }
			require.NoError(t, json.Unmarshal([]byte(answer), &said), answer)
			assert.Equal(t, tt.connect, said.Code)
			assert.Contains(t, said.Message, tt.message)
			assert.Equal(t, code == 503 || code == 429, header.Get("Retry-After") != "")
			if name == "debug info" {
				assert.Zero(t, f.Logs.FilterMessageSnippet("does not exist").Len())
			}
		})
	}
}

// A sender to an unknown path gets the right paths in the answer, and is logged once.
func TestStrayPushesAreSaidOnce(t *testing.T) {
	f := startFixture(t, serverOnly)
	for range 3 {
		code, _, answer := postRaw(t, f.base()+"/api/profiles", []byte("x"))
		require.Equal(t, http.StatusNotFound, code)
		require.Contains(t, answer, "/ingest")
	}
	require.Equal(t, 1, f.Logs.FilterMessageSnippet("does not exist").Len())
	require.Equal(t, int64(3), f.Sum(sourcetest.MetricRejected, "reason", "unknown_path", "source", "server"))
}

// Errors have the form of the client's protocol, also those of the authenticator and of decompression.
func TestRefusalsAreInTheClientsForm(t *testing.T) {
	id := component.MustNewID("gatekeeper")
	f := newFixture(t, "server: {endpoint: 'localhost:0', auth: {authenticator: gatekeeper, request_params: [key]}}")
	f.start(sourcetest.Host{id: gatekeeper{}})
	for _, path := range []string{"/ingest?name=a", "//ingest?name=a", connectPath} {
		code, _, answer := postRaw(t, f.base()+path, []byte("x"))
		assert.Equal(t, http.StatusUnauthorized, code)
		assert.JSONEq(t, `{"code": "unauthenticated", "message": "who are you?"}`, answer)
	}
	client, err := grpc.NewClient(f.pushServer().Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer client.Close()
	err = client.Invoke(t.Context(), connectPath, pushRequest(t), &pushv1.PushResponse{})
	assert.Equal(t, codes.Unauthenticated, status.Code(err), "%v", err)

	open := startFixture(t, serverOnly)
	code, _, answer := postRaw(t, open.base()+"/ingest?name=a", []byte("x"), "Content-Encoding", "lzma")
	assert.Equal(t, http.StatusUnsupportedMediaType, code)
	assert.Contains(t, answer, `"code":"unimplemented"`)
	debug, err := grpc.NewClient(open.pushServer().Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer debug.Close()
	err = debug.Invoke(t.Context(), "/debuginfo.v1alpha1.DebuginfoService/UploadFinished", pushRequest(t),
		&pushv1.PushResponse{})
	assert.Equal(t, codes.Unimplemented, status.Code(err), "%v", err)
	assert.Zero(t, open.Logs.FilterMessageSnippet("does not exist").Len())
}

// A client that is configured with http://host/pyroscope/ appends its path to the slash.
func TestDoubleSlashes(t *testing.T) {
	f := startFixture(t, serverOnly)
	for _, path := range []string{"//ingest", "/pyroscope//ingest", "///pyroscope//ingest"} {
		accepted(t, f.base()+path+"?name=shop&format=folded", []byte("main 1"))
	}
}

// A profile without a duration is a total since the process began. The client states which it is.
func TestTotalsAndDeltas(t *testing.T) {
	heap := sourcetest.Captured(t, "go-heap.pb.gz")
	const total = `{"alloc_space":{"units":"bytes","cumulative":true}}`
	const between = "&from=1795167161&until=1795167165"
	duration := func(f *fixture) uint64 {
		return f.Next.All()[0].ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).DurationNano()
	}
	for name, tt := range map[string]struct {
		query, config string
		want          uint64
	}{
		"a delta of pyroscope-go":         {between, `{"alloc_space":{"units":"bytes"}}`, 4e9},
		"a delta within a second":         {"&from=1795167161&until=1795167161", `{"alloc_space":{"units":"bytes"}}`, 1},
		"a total of old versions":         {between, total, 0},
		"a delta that nobody timed":       {"%7B__delta__=false%7D", "", 1},
		"nothing said, as of a raw pprof": {"", "", 0},
		"a delta, says the query":         {"&temporality=delta", total, 1},
		"a total, says the query":         {between + "&temporality=cumulative", `{"alloc_space":{"units":"bytes"}}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFixture(t, serverOnly)
			body, contentType := form(t, "=profile", heap, "=sample_type_config", []byte(tt.config))
			accepted(t, f.base()+"/ingest?name=shop"+tt.query, body, "Content-Type", contentType)
			require.Equal(t, tt.want, duration(f))
		})
	}
	// A sender's own profile has a time, too: @pyroscope/nodejs writes the end of the recording there.
	own := sourcetest.Captured(t, "go-cpu-labels.pb.gz")
	for query, want := range map[string][2]int64{between: {1795167161e9, 4e9}, "": {0, 0}} {
		f := startFixture(t, serverOnly)
		accepted(t, f.base()+"/ingest?name=shop"+query, own)
		if p := profiletest.ProfileAt(f.Next.All()[0], 0); query == "" {
			require.NotEqual(t, int64(1795167161e9), int64(p.Time()))
		} else {
			require.Equal(t, want, [2]int64{int64(p.Time()), int64(p.DurationNano())})
		}
	}
	push := pushRequest(t, heap)
	push.Series[0].Labels = append(push.Series[0].Labels, &typesv1.LabelPair{Name: "__delta__", Value: "false"})
	body, err := proto.Marshal(push)
	require.NoError(t, err)
	f := startFixture(t, serverOnly)
	accepted(t, f.base()+connectPath, body, "Content-Type", "application/proto")
	require.Equal(t, uint64(1), duration(f), "Alloy marks differences so")
}

// field returns a field of protobuf with a length.
func field(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// The profiles of a request repeat its labels, and together they may repeat them in proportion to the request only.
func TestLabelsOfPyroscopesClientsAreBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		labelBytes, profiles, code int
	}{
		"short labels, many profiles": {100, 100, 200},
		"long labels, one profile":    {60_000, 1, 200},
		"long labels, many profiles":  {60_000, 1024, 413},
		"too long":                    {70_000, 1, 413},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFixture(t, serverOnly)
			push := pushRequest(t, slices.Repeat([][]byte{[]byte("\x12\x00")}, tt.profiles)...)
			push.Series[0].Labels = append(push.Series[0].Labels,
				&typesv1.LabelPair{Name: "x", Value: strings.Repeat("x", tt.labelBytes)})
			body, err := proto.Marshal(push)
			require.NoError(t, err)
			code, _, answer := postRaw(t, f.base()+connectPath, body, "Content-Type", "application/proto")
			require.Equal(t, tt.code, code, answer)
			if code == http.StatusOK {
				require.Len(t, f.Next.All(), tt.profiles)
			} else {
				require.Zero(t, f.Next.Attempts())
				require.EqualValues(t, 1, f.Sum(sourcetest.MetricRejected, "reason", "too_large"))
			}
		})
	}
}

func TestPyroscopeConfig(t *testing.T) {
	f := startFixture(t,
		"server:\n  endpoint: localhost:0\n  pyroscope:\n    formats: [folded]\n    labels: {region: cloud.region, version: ''}\n"+
			"    session_id: session.id\n    tenant_attribute: tenant\n")
	code, _, _ := postRaw(t, f.base()+"/ingest?format=folded&name=shop%7Bregion%3Deu,version%3D1,__session_id__%3Ds%7D",
		[]byte("main 1"), "X-Scope-OrgID", "team")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, map[string]any{"service.name": "shop", "cloud.region": "eu", "session.id": "s", "tenant": "team"},
		f.Next.All()[0].ResourceProfiles().At(0).Resource().Attributes().AsRaw())
	code, _, _ = postRaw(t, f.base()+"/ingest?name=shop", sourcetest.Captured(t, "go-heap.pb.gz"))
	require.Equal(t, http.StatusUnsupportedMediaType, code)

	off := startFixture(t, "server:\n  endpoint: localhost:0\n  pyroscope: {enabled: false}\n")
	code, _, _ = postRaw(t, off.base()+"/ingest?name=shop&format=folded", []byte("main 1"))
	require.Equal(t, http.StatusNotFound, code)

	for _, section := range []string{"enabled: false, formats: []", "labels: {service_name: drop, a: '', b: ''}"} {
		_, err := loadConfig("server:\n  endpoint: localhost:0\n  pyroscope: {" + section + "}\n")
		require.NoError(t, err, section)
	}
}

// Instances of one service stay apart: by the session that pyroscope-go derives from the host's name, or by a label.
func TestPyroscopeSessions(t *testing.T) {
	for query, want := range map[string]any{
		"name=shop%7B__session_id__%3D77e425ea48b3919f%7D":                             "77e425ea48b3919f",
		"name=shop%7Bhostname%3Dpod-1,__session_id__%3D77e425ea48b3919f%7D":            "pod-1",
		"name=shop%7Bservice.instance.id%3Dpod-2,__session_id__%3D77e425ea48b3919f%7D": "pod-2",
		"name=shop": nil,
	} {
		f := startFixture(t, "server:\n  endpoint: localhost:0\n  pyroscope: {labels: {hostname: service.instance.id}}\n")
		accepted(t, f.base()+"/ingest?format=folded&"+query, []byte("main 1"))
		attributes := f.Next.All()[0].ResourceProfiles().At(0).Resource().Attributes().AsRaw()
		require.Equal(t, want, attributes["service.instance.id"], query)
	}
}

// The cost of requests is bounded: many profiles in one, text that expands, bombs.
func TestPyroscopePushesAreBounded(t *testing.T) {
	tiny := pushRequest(t)
	for range 1000 {
		tiny.Series[0].Samples = append(tiny.Series[0].Samples, &pushv1.RawSample{RawProfile: []byte("\x12\x00")})
	}
	many, err := proto.Marshal(tiny)
	require.NoError(t, err)
	bomb := profiletest.Gzip(make([]byte, 256<<20))
	bombs, err := proto.Marshal(pushRequest(t, bomb, bomb, bomb))
	require.NoError(t, err)
	empty := bytes.Repeat(field(2, field(1, nil)), 1024)
	longLabels := field(1,
		append(field(1, append(field(1, []byte("a")), field(2, bytes.Repeat([]byte("a\xff"), 256<<10))...)), empty...))
	longName := field(1,
		append(field(1, append(field(1, []byte("__name__")), field(2, bytes.Repeat([]byte("a\xff"), 256<<10))...)), empty...))
	repeated := field(1, field(2, bytes.Repeat(field(1, nil), 1<<20)))
	bombedForm, formType := form(t, "=jfr", []byte("FLR"), "=labels", bomb)
	asJSON := []byte(`{"series":[{"samples":[{"rawProfile":"` + base64.StdEncoding.EncodeToString(bomb) + `"}]}]}`)
	f := startFixture(t, serverOnly+"limits: {max_profile_bytes: 8388608}\n")
	f.Next.Discard = true
	for _, request := range []struct {
		path, content string
		body          []byte
	}{
		{connectPath, "application/proto", longLabels}, {connectPath, "application/proto", longName},
		{connectPath, "application/proto", repeated},
		{connectPath, "application/proto", many}, {connectPath, "application/proto", bombs},
		{connectPath, "application/json", asJSON},
		{"/ingest?name=a&format=folded", "", bomb}, {"/ingest?name=a&format=jfr", "", bomb},
		{"/ingest?name=a&format=jfr", formType, bombedForm},
		{"/ingest?name=a&format=lines", "", bytes.Repeat([]byte("a\n"), 1<<20)},
	} {
		profiletest.RequireCost(t, profiletest.Bound{HeapBytes: 160 << 20}, func() {
			code, _, answer := postRaw(t, f.base()+request.path, request.body, "Content-Type", request.content)
			assert.Less(t, code, 500, answer)
		})
	}
}
