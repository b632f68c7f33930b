// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpclient"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// hecStub checks requests, and records the events of those that it accepts.
type hecStub struct {
	mu     sync.Mutex
	asked  int
	answer func(w http.ResponseWriter, n int) bool
	events []map[string]any
}

func (s *hecStub) serve(t *testing.T) map[string]any {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked++
		assert.Equal(t, "/services/collector", r.URL.Path)
		assert.Equal(t, http.MethodPost, r.Method)
		assert.Equal(t, "Splunk secret", r.Header.Get("Authorization"))
		assert.Equal(t, "gzip", r.Header.Get("Content-Encoding"))
		assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
		assert.Equal(t, "otel.profiling", r.Header.Get("X-Splunk-Instrumentation-Library"))
		body := plainBody(t, r)
		if s.answer != nil && s.answer(w, s.asked) {
			return
		}
		assert.Empty(t, r.Header.Get("X-Splunk-Request-Channel"), "without a channel nothing is to be acknowledged")
		assert.LessOrEqual(t, len(body), 2<<20)
		decoder := json.NewDecoder(strings.NewReader(string(body)))
		decoder.UseNumber()
		for {
			var e map[string]any
			err := decoder.Decode(&e)
			if err == io.EOF {
				break
			}
			if !assert.NoError(t, err) {
				return
			}
			checkEvent(t, e)
			s.events = append(s.events, e)
		}
		_, _ = io.WriteString(w, `{"text":"Success","code":0}`)
	}))
	t.Cleanup(server.Close)
	return map[string]any{"endpoint": server.URL + "/services/collector", "token": "secret"}
}

// checkEvent holds an event against HEC's rules.
func checkEvent(t *testing.T, e map[string]any) {
	for key, value := range e {
		switch key {
		case "host", "source", "sourcetype", "index", "event":
			assert.NotEmpty(t, value, key)
			assert.IsType(t, "", value, key)
		case "time":
			assert.Regexp(t, `^[0-9]+\.[0-9]{3}$`, value)
			assert.IsType(t, json.Number(""), value)
		case "fields":
			for name, field := range value.(map[string]any) {
				assert.NotContains(t, name, "token")
				_, nested := field.(map[string]any)
				assert.False(t, nested, name)
			}
		default:
			assert.Fail(t, "an event has no "+key)
		}
	}
	for _, key := range []string{"host", "sourcetype", "event"} {
		assert.Contains(t, e, key)
	}
}

func TestHECEvents(t *testing.T) {
	s := &hecStub{}
	e := runExporter(t, map[string]any{"hec": s.serve(t)})
	pd := profiletest.New().Resource("service.name", "shop", "host.name", "box", "com.splunk.source", "agent",
		"com.splunk.index", "main", "tags", []any{"a", 1}, "deep", []any{[]any{"a"}},
		"os", map[string]any{"type": "linux", "version": map[string]any{"major": 6}}, "com.splunk.hec.access_token",
		"not to be seen").
		Scope("otel.profiling", "1").
		Profile("samples", "count").Time(start+1, 1).Attributes(profiletest.Attr("ratio", 0.5),
		profiletest.Attr("profiling.instrumentation.source", "continuous")).
		Sample(profiletest.Observed([]uint64{start + 1}, "leaf")).Build()
	e.send(t, pd)
	require.Len(t, s.events, 1)
	got := s.events[0]
	assert.NotEmpty(t, got["event"])
	delete(got, "event")
	assert.Equal(t, map[string]any{
		"time": json.Number("1700000000.000"), "host": "box", "source": "agent", "sourcetype": "otel.profiling",
		"index": "main",
		"fields": map[string]any{
			"service.name": "shop", "source.event.time.unix_nano": json.Number("1700000000000000001"),
			"tags": []any{"a", json.Number("1")}, "deep": `[["a"]]`,
			"os.type": "linux", "os.version.major": json.Number("6"), "ratio": json.Number("0.5"),
			"profiling.instrumentation.source": "continuous",
			"profiling.data.type":              "cpu", "profiling.data.format": "pprof-gzip-base64",
			"profiling.data.total.frame.count": json.Number("1"),
		},
	}, got)
	assert.Equal(t, int64(1), e.metric(t, "mode"), "events are always log records")
	assert.Zero(t, e.metric(t, "switches"))
}

// These answers do not pass; a peer whose answer counts rejected events has accepted the others.
func TestHECAnswers(t *testing.T) {
	for _, status := range []int{400, 401, 403} {
		s := &hecStub{answer: func(w http.ResponseWriter, _ int) bool {
			http.Error(w, `{"text":"no","code":9}`, status)
			return true
		}}
		err := runExporter(t, map[string]any{"hec": s.serve(t)}).ConsumeProfiles(t.Context(), batch("x", 3))
		require.Error(t, err)
		assert.True(t, consumererror.IsPermanent(err))
		assert.Equal(t, 1, s.asked)
	}
	for _, reason := range []string{"not this one", strings.Repeat("a long reason", 200)} {
		s := &hecStub{answer: func(w http.ResponseWriter, _ int) bool {
			http.Error(w, `{"text":"Invalid data format","code":6,"rejected":1,"reason":"`+reason+`"}`, http.StatusBadRequest)
			return true
		}}
		e := runExporter(t, map[string]any{"hec": s.serve(t)})
		e.send(t, batch("x", 3))
		assert.Equal(t, int64(1), e.metric(t, "rejected_items"), reason)
	}
}

// timed has times that are no whole number of milliseconds, links and labels.
func timed() pprofile.Profiles {
	builder := profiletest.New().Resource("host.name", "box", "service.name", "shop").
		Scope("otel.profiling", "", "pprof.scope.profile_name", "wall").
		Profile("samples", "count").Time(start+499_999, 6_000_012+10_000_000).Period(10_000_000, "cpu", "nanoseconds").
		Attributes(profiletest.Attr("otlp.aggregation_temporality", "delta"), profiletest.Attr("pprof.profile.doc_url", "u"),
			profiletest.Attr("profile.clock.guess", "arrival"))
	for i := range uint64(3) {
		builder.Sample(profiletest.Observed([]uint64{start + 499_999 + i*3_000_006}, fmt.Sprint("leaf", i), "main").
			With(profiletest.Attr("thread.name", "worker")).Linked([16]byte{1, byte(i)}, [8]byte{2, byte(i)}))
	}
	return builder.Build()
}

// The server names the delay.
func TestHECRetryAfter(t *testing.T) {
	t.Parallel()
	for _, status := range []int{408, 429, 500, 502, 503, 504} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			var refused time.Time
			s := &hecStub{answer: func(w http.ResponseWriter, n int) bool {
				if n == 1 {
					refused = time.Now()
					w.Header().Set("Retry-After", "1")
					http.Error(w, `{"text":"Server is busy","code":9}`, status)
					return true
				}
				assert.GreaterOrEqual(t, time.Since(refused), time.Second)
				return false
			}}
			e := runExporter(t, map[string]any{"hec": s.serve(t)})
			e.send(t, batch("x", 3))
			assert.Len(t, s.events, 1)
			assert.Equal(t, 2, s.asked)
		})
	}
}

// manyProfiles has profiles of one sample each, of one resource.
func manyProfiles(n, resourceBytes int) pprofile.Profiles {
	builder := profiletest.New().Resource("service.name", "shop", "note", strings.Repeat("n", resourceBytes))
	for i := range n {
		builder.Profile("samples", "count").Time(start+uint64(i), 1).
			Sample(profiletest.Observed([]uint64{start + uint64(i)}, "main"))
	}
	return builder.Build()
}

// Events repeat what records share: they arrive in requests within the limit nevertheless, and not in many, although
// profiles would be larger in parts.
func TestHECSize(t *testing.T) {
	profiletest.SkipLarge(t)
	for _, tc := range []struct{ profiles, resourceBytes int }{{2500, 1000}, {600, 30_000}} {
		s := &hecStub{}
		e := runExporter(t, map[string]any{"hec": s.serve(t)})
		e.send(t, manyProfiles(tc.profiles, tc.resourceBytes))
		assert.Len(t, s.events, tc.profiles, "each profile is an event")
		assert.Greater(t, s.asked, 2)
		assert.Less(t, s.asked, 30)
	}
}

// A profile is not split because its resource alone is larger than a request.
func TestHECResourceThatIsTooLarge(t *testing.T) {
	builder := profiletest.New().Resource("service.name", "shop", "note", strings.Repeat("n", 60_000))
	for _, sampleType := range []string{"samples", "inuse_space", "goroutine"} {
		builder.Profile(sampleType, "count").Time(start, 1000)
		for i := range 1000 {
			builder.Sample(profiletest.Observed([]uint64{start + uint64(i)}, "main"))
		}
	}
	for _, limit := range []int{50_000, 100_000} {
		s := &hecStub{}
		hec := s.serve(t)
		hec["max_request_bytes"] = limit
		e := runExporter(t, map[string]any{"hec": hec})
		e.send(t, builder.Build())
		assert.Equal(t, int64(3000), e.metric(t, "samples"))
		assert.Len(t, s.events, 3)
		assert.Equal(t, 3, s.asked)
	}
}

// What events may repeat is bounded: the rest of the profiles is dropped.
func TestHECIsBounded(t *testing.T) {
	profiletest.SkipLarge(t)
	pd := manyProfiles(2000, 256<<10)
	size := sizeOf(pd)
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		assert.NoError(t, err)
		assert.LessOrEqual(t, n, int64(2<<20))
		sent += int(n)
	}))
	defer server.Close()
	profiletest.RequireCostOfEach(t, profiletest.Bound{HeapBytes: 96<<20 + 64*size}, func() func() {
		sent = 0
		e := runExporter(t,
			map[string]any{"hec": map[string]any{"endpoint": server.URL, "token": "secret", "compression": "none"}})
		return func() {
			assert.NoError(t, e.ConsumeProfiles(t.Context(), pd))
			assert.Equal(t, int64(2000), e.metric(t, "samples")+e.metric(t, "dropped_samples"))
			assert.Less(t, sent, 16<<20+257*size, "16 MiB and 256 times the size")
		}
	})
}

func TestHECEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://splunk:8088":                                 "https://splunk:8088/services/collector",
		"https://splunk:8088/":                                "https://splunk:8088/services/collector",
		"https://ingest.us0.observability.example.com/v1/log": "https://ingest.us0.observability.example.com/v1/log",
	} {
		config := &HECConfig{}
		config.Client.Endpoint = endpoint
		assert.Equal(t, want, newHECPeer(config, httpclient.Client{}).logsURL)
	}
}
