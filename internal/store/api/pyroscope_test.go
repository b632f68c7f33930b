// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"connectrpc.com/connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/api"
	querypkg "github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// serveCalls serves a store with profiles of n distinct stacks.
func serveCalls(t *testing.T, n int, change func(*api.Settings)) *httptest.Server {
	t.Helper()
	s := store.New(store.Config{Window: time.Hour, Resolution: time.Second, MaxBytes: 256 << 20, MaxSeries: 100})
	var samples []profiletest.Sample
	for i := range n {
		samples = append(samples, profiletest.Value(1, fmt.Sprint("leaf", i), "root"))
	}
	pd := profiletest.New().Resource("service.name", "shop").Profile("cpu", "nanoseconds").Period(1, "cpu", "nanoseconds").
		Time(uint64(noon.Add(-time.Minute).UnixNano()), 1e9).Sample(samples...).Build()
	require.NotZero(t, s.Add(pd, noon).Profiles)
	settings := api.Settings{
		Store: s.Querier, Page: fstest.MapFS{}, Version: "1.2.3", Limits: querypkg.Limits{MaxConcurrent: 1, Timeout: time.Minute},
		Now: func() time.Time { return noon },
	}
	if change != nil {
		change(&settings)
	}
	server := httptest.NewServer(api.New(settings))
	t.Cleanup(server.Close)
	return server
}

func stacktraces() *connect.Request[querierv1.SelectMergeStacktracesRequest] {
	return connect.NewRequest(&querierv1.SelectMergeStacktracesRequest{
		ProfileTypeID: "process_cpu:cpu:nanoseconds:cpu:nanoseconds", LabelSelector: `{service_name="shop"}`,
		Start: noon.Add(-time.Hour).UnixMilli(), End: noon.UnixMilli(),
	})
}

// A call is answered in each of Connect's protocols that HTTP/1 carries.
func TestCallsInEachProtocol(t *testing.T) {
	server := serveCalls(t, 3, nil)
	for name, options := range map[string][]connect.ClientOption{
		"protobuf": nil, "JSON": {connect.WithProtoJSON()}, "gRPC-Web": {connect.WithGRPCWeb()},
		"gzip": {connect.WithSendGzip()},
	} {
		c := querierv1connect.NewQuerierServiceClient(server.Client(), server.URL, options...)
		in := stacktraces()
		in.Header().Set("X-Scope-OrgID", "anyone")
		out, err := c.SelectMergeStacktraces(t.Context(), in)
		require.NoError(t, err, name)
		assert.EqualValues(t, 3, out.Msg.Flamegraph.Total, name)
	}
}

// post sends JSON as a browser or Grafana's proxy does.
func post(t *testing.T, url, body string) (status int, text string) {
	t.Helper()
	answer := collectortest.Ask(t, http.MethodPost, url, strings.NewReader(body), "Content-Type", "application/json")
	return answer.StatusCode, answer.Body
}

func TestCallsOfTheApp(t *testing.T) {
	server := serveCalls(t, 3, nil)
	at := fmt.Sprintf(`"start": %d, "end": %d`, noon.Add(-time.Hour).UnixMilli(), noon.UnixMilli())
	for path, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"/querier.v1.QuerierService/Series": {
			`{` + at + `, "labelNames": ["service_name", "__profile_type__"], "matchers": []}`, 200,
			`{"name":"service_name", "value":"shop"}`,
		},
		"/querier.v1.QuerierService/GetProfileStats": {`{}`, 200, `"dataIngested":true`},
		"/querier.v1.QuerierService/AnalyzeQuery": {
			`{` + at + `, "query": "process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"shop\"}"}`, 200,
			`"totalQueriedSeries":"1"`,
		},
		"/querier.v1.QuerierService/ProfileTypes":               {`{"start": 1000, "end": 4000}`, 200, `{}`},
		"/querier.v1.QuerierService/LabelValues":                {`{}`, 400, `"code":"invalid_argument"`},
		"/querier.v1.QuerierService/Nothing":                    {`{}`, 404, ""},
		"/settings.v1.RecordingRulesService/ListRecordingRules": {`{}`, 501, `"code":"unimplemented"`},
		"/adhocprofiles.v1.AdHocProfileService/Upload":          {`{}`, 501, `"code":"unimplemented"`},
		"/vcs.v1.VCSService/GithubApp":                          {`{}`, 501, `"code":"unimplemented"`},
		"/push.v1.PusherService/Push":                           {`{}`, 405, "on 4040"},
		"/api/services":                                         {`{}`, 405, "read only"},
		"/v1/pprof":                                             {`{}`, 405, "on 4040"},
	} {
		status, answer := post(t, server.URL+path, c.body)
		assert.Equal(t, c.status, status, "%s: %s", path, answer)
		assert.Contains(t, strings.ReplaceAll(answer, `","value"`, `", "value"`), c.want, path)
	}
	build := collectortest.Ask(t, http.MethodGet, server.URL+"/api/v1/status/buildinfo", http.NoBody)
	assert.Contains(t, build.Body, `"version":"1.2.3"`)
}

// Calls have the limits of all queries: memory, time and the size of a request. The error says which.
func TestCallsAreLimited(t *testing.T) {
	ask := func(change func(*api.Settings)) error {
		server := serveCalls(t, 20_000, change)
		_, err := querierv1connect.NewQuerierServiceClient(server.Client(), server.URL).SelectMergeStacktraces(t.Context(),
			stacktraces())
		return err
	}
	require.NoError(t, ask(nil))
	err := ask(func(s *api.Settings) { s.Budget = budget.New(2 << 20) })
	assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), err)
	assert.ErrorContains(t, err, "the answer would be too large")
	err = ask(func(s *api.Settings) { s.Timeout, s.TimeoutHint = time.Nanosecond, "raise it" })
	assert.Equal(t, connect.CodeDeadlineExceeded, connect.CodeOf(err), err)
	assert.ErrorContains(t, err, "raise it")
	server := serveCalls(t, 1, nil)
	status, answer := post(t, server.URL+"/querier.v1.QuerierService/Series",
		`{"matchers": ["`+strings.Repeat("x", math.MaxUint16*16)+`"]}`)
	assert.Equal(t, http.StatusTooManyRequests, status)
	assert.Contains(t, answer, "larger than 524288 bytes")
}

// A page of another site cannot make a browser call, and is told so in Connect's model.
func TestCallsOfOtherSites(t *testing.T) {
	rule := api.Browsers(nil, "")
	for _, header := range []http.Header{{"Origin": {"https://elsewhere.example"}}, {"Sec-Fetch-Site": {"cross-site"}}} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/querier.v1.QuerierService/Series",
			strings.NewReader("{}"))
		r.Header = header
		r.Header.Set("Content-Type", "application/json")
		err := rule.Check(r)
		require.Error(t, err)
		w := httptest.NewRecorder()
		rule.Refuse(w, r, err)
		assert.Equal(t, http.StatusForbidden, w.Code)
		assert.Contains(t, w.Body.String(), `"code":"permission_denied"`)
	}
}

// The bodies of calls are on the budget of queries, as they arrive.
func TestBodiesOfCallsAreOnTheBudget(t *testing.T) {
	queries := budget.New(64 << 20)
	server := serveCalls(t, 3, func(s *api.Settings) { s.Budget = queries })
	const sent = 400 << 10
	conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST /querier.v1.QuerierService/SelectMergeStacktraces HTTP/1.1\r\nHost: localhost\r\n"+
		"Content-Type: application/proto\r\nContent-Length: %d\r\n\r\n%s", sent+1, strings.Repeat("x", sent))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return queries.HeldBytes() >= sent }, 30*time.Second, time.Millisecond)
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool { return queries.HeldBytes() == 0 }, 30*time.Second, time.Millisecond)
}

// The budget has an answer while it is written.
func TestAnswersAreOnTheBudget(t *testing.T) {
	b := budget.New(256 * mib)
	handler := serveCalls(t, 20_000, func(s *api.Settings) { s.Budget = b }).Config.Handler
	call := fmt.Sprintf(`{"profileTypeID":"process_cpu:cpu:nanoseconds:cpu:nanoseconds","labelSelector":"{}","start":0,`+
		`"end":%d,"maxNodes":100000}`, noon.UnixMilli())
	for path, body := range map[string]string{"/api/flamegraph" + query: "",
		"/querier.v1.QuerierService/SelectMergeStacktraces": call} {
		w, method := &writing{ResponseRecorder: httptest.NewRecorder(), held: b.HeldBytes}, http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
		r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		require.Greater(t, w.Body.Len(), mib/2)
		assert.GreaterOrEqual(t, w.first, int64(w.Body.Len()), path)
		assert.Zero(t, b.HeldBytes())
	}
}

// writing notes what is held when the first part of an answer is written.
type writing struct {
	*httptest.ResponseRecorder
	held  func() int64
	first int64
}

func (w *writing) Write(p []byte) (int, error) {
	if w.first == 0 {
		w.first = w.held()
	}
	return w.ResponseRecorder.Write(p)
}
