// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"google.golang.org/grpc/codes"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/hec"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

const eventPath = "/services/collector/event"

func (f *fixture) postHEC(t testing.TB, path, body string, headers ...string) (collectortest.Answer, hec.Answer) {
	t.Helper()
	response := post(t, "http://"+f.address("hec")+path, []byte(body), headers...)
	assert.Equal(t, httpserver.ContentJSON, response.Header.Get("Content-Type"))
	var answer hec.Answer
	require.NoError(t, json.Unmarshal([]byte(response.Body), &answer), response.Body)
	return response, answer
}

// eventOf writes a record as the Collector's HEC exporter does: attributes of record and resource as fields.
func eventOf(t testing.TB, ld plog.Logs) string {
	t.Helper()
	rl := ld.ResourceLogs().At(0)
	record := rl.ScopeLogs().At(0).LogRecords().At(0)
	fields := map[string]any{}
	for key, value := range rl.Resource().Attributes().All() {
		fields[key] = value.AsRaw()
	}
	for key, value := range record.Attributes().All() {
		fields[key] = value.AsRaw()
	}
	sourceType := fields["com.splunk.sourcetype"]
	delete(fields, "com.splunk.sourcetype")
	hostName := fields["host.name"]
	delete(fields, "host.name")
	text, err := json.Marshal(map[string]any{
		"time": float64(record.Timestamp()) / 1e9, "host": hostName, "sourcetype": sourceType,
		"event": record.Body().AsRaw(), "fields": fields,
	})
	require.NoError(t, err)
	return string(text)
}

// Every captured request, as HEC events, becomes the same profiles.
func TestHECCapturedRequests(t *testing.T) {
	f := startFixture(t, allOfThem, false)
	for _, path := range []string{"/services/collector", eventPath, "/services/collector/event/1.0", "/v1/log"} {
		for name, body := range captured(t) {
			ld := requestOf(t, body).Logs()
			want := records.Translate(ld, records.Options{}).Profiles
			response, answer := f.postHEC(t, path, eventOf(t, ld))
			require.Equal(t, http.StatusOK, response.StatusCode, answer)
			assert.Equal(t, hec.Answer{Text: "Success"}, answer)
			profiles, _ := f.next.drain()
			if want.ProfileCount() == 0 {
				assert.Empty(t, profiles)
				continue
			}
			require.Len(t, profiles, 1)
			// What HEC has no place for: the version of the scope. The id is a hash of the record's time too.
			want.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().SetVersion("")
			profile := want.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
			profile.SetProfileID(profiles[0].ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).ProfileID())
			assert.NoError(t, profiletest.Equal(want, profiles[0]), name)
		}
	}
}

func TestHECSeveralEvents(t *testing.T) {
	f := startFixture(t, allOfThem, true)
	text, err := json.Marshal(stack)
	require.NoError(t, err)
	profile := `{"time": "1700000000.123456789", "host": "h", "source": "s", "index": "i", "sourcetype": "otel.profiling", "event": ` + string(text) +
		`, "fields": {"profiling.data.format": "text", "source.event.period": "1000", "service.name": "shop", "trace_id": "1f", "span_id": "2e", "n": 1}}`
	ordinary := `{"time": 1700000000, "host": "h", "source": "s", "index": "i", "sourcetype": "httpevent", "event": {"b": 1, "a": [true, "x", 1.5]}, "fields": {"k": "v"}}`
	response, answer := f.postHEC(t, eventPath, profile+"\n"+ordinary+profile+" "+ordinary)
	require.Equal(t, http.StatusOK, response.StatusCode, answer)
	profiles, logs := f.next.drain()
	require.Len(t, profiles, 1)
	assert.Equal(t, `resource {com.splunk.index="i", com.splunk.source="s", host.name="h", n=1, service.name="shop"}
  scope otel.profiling ""
    profile samples in count
      time 1700000000123456789 ns
      duration 1000000000 ns
      period 1000000000 cpu in nanoseconds
      sample @1700000000123456789 @1700000000123456789 {thread.id=1, thread.name="main", thread.os.id=3, thread.state="RUNNABLE"} link 0000000000000000000000000000001f/000000000000002e
        com.shop.Cart.total Cart.java:12
`, withoutID(profiletest.Render(profiles[0])))

	require.Len(t, logs, 1)
	require.Equal(t, 2, logs[0].LogRecordCount())
	rl := logs[0].ResourceLogs().At(1)
	assert.Equal(t, map[string]any{"host.name": "h", "com.splunk.source": "s", "com.splunk.index": "i",
		"com.splunk.sourcetype": "httpevent"}, rl.Resource().Attributes().AsRaw())
	record := rl.ScopeLogs().At(0).LogRecords().At(0)
	assert.EqualValues(t, int64(1_700_000_000_000_000_000), record.Timestamp())
	assert.NotZero(t, record.ObservedTimestamp())
	assert.Equal(t, map[string]any{"k": "v"}, record.Attributes().AsRaw())
	assert.Equal(t, map[string]any{"a": []any{true, "x", 1.5}, "b": int64(1)}, record.Body().AsRaw())
}

// withoutID removes the line of a profile's id from a rendering.
func withoutID(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "profile_id") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// Splunk's collector names a host even if there is none, writes a record's severity as fields, and rounds its time to
// the millisecond. None of it is the profile's.
func TestHECAsSplunkCollectorWritesIt(t *testing.T) {
	f := startFixture(t, allOfThem, true)
	fields := `"fields": {"otel.log.severity.text": "INFO", "otel.log.severity.number": 9, "otel.log.name": "n", "service.name": "shop",
		"profiling.data.format": "text", "source.event.time.unix_nano": 1700000000000000123, "source.event.period": 1000}`
	_, answer := f.postHEC(t, eventPath,
		`{"time": 1700000000.000, "host": "unknown", "source": "shop", "sourcetype": "otel.profiling", "event": "\n\nat f(x:1)", `+fields+`}`+
			`{"time": 1700000000.000, "host": "unknown", "event": "ordinary", `+fields+`}`)
	require.Equal(t, hec.Success, answer.Code, answer)
	profiles, logs := f.next.drain()
	require.Len(t, profiles, 1)
	assert.Equal(t, `resource {com.splunk.source="shop", service.name="shop"}
  scope otel.profiling ""
    profile samples in count
      time 1700000000000000123 ns
      duration 1000000000 ns
      period 1000000000 cpu in nanoseconds
      attributes {otel.log.name="n"}
      sample @1700000000000000123
        f x:1
`, withoutID(profiletest.Render(profiles[0])))
	// An ordinary event keeps all of it.
	require.Len(t, logs, 1)
	rl := logs[0].ResourceLogs().At(0)
	assert.Equal(t, map[string]any{"host.name": "unknown"}, rl.Resource().Attributes().AsRaw())
	assert.Equal(t, 7, rl.ScopeLogs().At(0).LogRecords().At(0).Attributes().Len())
}

// The number is that of the first event that was not accepted, also if the pipeline refuses it.
func TestHECNumberOfARefusedEvent(t *testing.T) {
	f := startFixture(t, allOfThem, true)
	f.next.refuse(consumererror.NewPermanent(errors.New("never")), nil)
	response, answer := f.postHEC(t, eventPath,
		`{"event": "ordinary"}{"event": "ordinary"}{"event": "\n\nat f(x:1)", "sourcetype": "otel.profiling"}`)
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
	assert.Equal(t, 1, answer.Rejected)
	if assert.NotNil(t, answer.InvalidEvent) {
		assert.Equal(t, 2, *answer.InvalidEvent)
	}
}

// The descriptions of profiles_to_logs pass through HEC: every type of a heap profile is restored.
func TestHECKeepsDescriptions(t *testing.T) {
	f := startFixture(t, allOfThem, false)
	payload := profiletest.FileBytes(t, filepath.Join("..", "..", "testdata", "pprof", "go-heap.pb.gz"))
	want, _, err := decode.Decode(payload, decode.Options{})
	require.NoError(t, err)
	part, ok := records.NewEncoder(want, records.EncodeOptions{}).Next()
	require.True(t, ok)
	var events strings.Builder
	rl := part.Logs.ResourceLogs().At(0)
	for _, record := range rl.ScopeLogs().At(0).LogRecords().All() {
		one := plog.NewLogs()
		rl.Resource().CopyTo(one.ResourceLogs().AppendEmpty().Resource())
		to := one.ResourceLogs().At(0).ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
		record.CopyTo(to)
		to.Attributes().PutInt("source.event.time.unix_nano", int64(record.Timestamp()))
		to.SetTimestamp((record.Timestamp() + 500_000) / 1e6 * 1e6)
		events.WriteString(eventOf(t, one))
	}
	_, answer := f.postHEC(t, eventPath, events.String())
	require.Equal(t, hec.Success, answer.Code, answer)
	profiles, _ := f.next.drain()
	require.Len(t, profiles, 1)
	got := profiles[0]
	require.NoError(t, profiletest.Check(got))
	require.Equal(t, 4, got.ProfileCount())
	// HEC has no scopes, and a profile's id is a hash of its body.
	want.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().SetName("")
	got.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().SetName("")
	want.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().Clear()
	for i := range 4 {
		profiletest.ProfileAt(want, i).SetProfileID(profiletest.ProfileAt(got, i).ProfileID())
	}
	assert.NoError(t, profiletest.Equal(want, got))
}

func TestHECLibraryHeader(t *testing.T) {
	f := startFixture(t, allOfThem, false)
	text, err := json.Marshal(stack)
	require.NoError(t, err)
	_, answer := f.postHEC(t, "/v1/log", `{"event": `+string(text)+`, "fields": {"profiling.data.format": "text"}}`,
		hec.LibraryHeader, "otel.profiling")
	assert.Equal(t, hec.Success, answer.Code)
	profiles, _ := f.next.drain()
	assert.Len(t, profiles, 1)
}

func TestHECAnswers(t *testing.T) {
	f := startFixture(t, allOfThem, false)
	good := `{"event": "\n\nat f(x:1)", "sourcetype": "otel.profiling"}`
	for name, tc := range map[string]struct {
		path, body string
		status     int
		code       hec.Code
		invalid    int // −1: none
	}{
		"nothing":         {eventPath, "", 400, hec.NoData, -1},
		"white space":     {eventPath, " \n", 400, hec.NoData, -1},
		"no JSON":         {eventPath, "hello", 400, hec.InvalidData, 0},
		"a list":          {eventPath, "[" + good + "]", 400, hec.InvalidData, 0},
		"half an event":   {eventPath, good + `{"event": "x"`, 400, hec.InvalidData, 1},
		"no event":        {eventPath, good + `{"time": 1}`, 400, hec.EventRequired, 1},
		"a blank event":   {eventPath, `{"event": ""}`, 400, hec.EventBlank, 0},
		"null":            {eventPath, `{"event": null}`, 400, hec.EventBlank, 0},
		"nested fields":   {eventPath, `{"event": "x", "fields": {"a": {"b": 1}}}`, 400, hec.InvalidFields, 0},
		"no time":         {eventPath, `{"event": "x", "time": "now"}`, 400, hec.InvalidData, 0},
		"a negative time": {eventPath, `{"event": "x", "time": -1}`, 400, hec.InvalidData, 0},
		"an endless time": {eventPath, `{"event": "x", "time": 1e300}`, 400, hec.InvalidData, 0},
		"garbage as profile": {eventPath, good + good + `{"event": "x", "sourcetype": "otel.profiling"}`, 400,
			hec.InvalidData, 2},
		"an ordinary event": {eventPath, good + `{"event": "x"}`, 400, hec.InvalidData, 1},
		"acknowledgement":   {"/services/collector/ack?channel=1", `{"acks": [1]}`, 400, hec.AckDisabled, -1},
		"another path":      {"/services/collector/raw", "x", 404, 404, -1},
		"health":            {"/services/collector/health", "", 200, hec.Healthy, -1},
		"too many":          {eventPath, strings.Repeat(`{"event":1}`, hec.MaxEvents+1), 413, hec.TooLarge, -1},
		"a number out of all": {eventPath, good + `{"event": 1e999, "fields": {"n": 12345678901234567890}}`, 400,
			hec.InvalidData, 1},
	} {
		t.Run(name, func(t *testing.T) {
			response, answer := f.postHEC(t, tc.path, tc.body)
			assert.Equal(t, tc.status, response.StatusCode, answer)
			assert.Equal(t, tc.code, answer.Code, answer)
			assert.NotEmpty(t, answer.Text)
			if tc.invalid < 0 {
				assert.Nil(t, answer.InvalidEvent)
			} else if assert.NotNil(t, answer.InvalidEvent) {
				assert.Equal(t, tc.invalid, *answer.InvalidEvent)
			}
			f.next.drain()
		})
	}
	small := startFixture(t, "protocols: {hec: {endpoint: 'localhost:0', max_request_body_size: 1000}}", false)
	response, answer := small.postHEC(t, eventPath, strings.Repeat(" ", 2000))
	assert.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
	assert.Equal(t, hec.TooLarge, answer.Code)
	for body, want := range map[string]string{
		"[" + good + "]":               "each event must be an object, one after another and in no list",
		`{"host": 7, "event": "x"}`:    "`host` must not be of type number",
		`{"fields": [], "event": "x"}`: "`fields` must not be of type array",
	} {
		_, answer = f.postHEC(t, eventPath, body)
		assert.Contains(t, answer.Reason, want)
	}
	_, answer = f.postHEC(t, "/v1/logs", "x")
	assert.Contains(t, answer.Reason, "OTLP logs go to the endpoints of `grpc` and `http`")
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		got := collectortest.Ask(t, method, "http://"+f.address("hec")+eventPath, nil)
		assert.Equal(t, http.StatusMethodNotAllowed, got.StatusCode)
	}
}

// Only the event that cannot be read is refused: the others were accepted.
func TestHECTakesTheOthers(t *testing.T) {
	f := startFixture(t, allOfThem, false)
	good := `{"event": "\n\nat f(x:1)", "sourcetype": "otel.profiling"}`
	_, answer := f.postHEC(t, eventPath, good+`{"event": "x", "sourcetype": "otel.profiling"}`+good)
	assert.Equal(t, 1, answer.Rejected)
	assert.Contains(t, answer.Reason, "no line of the text is a stack frame")
	profiles, _ := f.next.drain()
	require.Len(t, profiles, 1)
	_, answer = f.postHEC(t, eventPath, good+`{"event": ""}`)
	assert.Equal(t, hec.EventBlank, answer.Code)
	profiles, _ = f.next.drain()
	assert.Empty(t, profiles, "a body that is not HEC is refused as a whole")
}

func TestHECRefusals(t *testing.T) {
	f := startFixture(t, allOfThem, false)
	good := `{"event": "\n\nat f(x:1)", "sourcetype": "otel.profiling"}`
	f.next.refuse(throttled(t, codes.ResourceExhausted), nil)
	response, answer := f.postHEC(t, eventPath, good)
	assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	assert.Equal(t, hec.Busy, answer.Code)
	assert.Equal(t, "7", response.Header.Get("Retry-After"))
	f.next.refuse(errors.New("data refused due to high memory usage"), nil)
	response, _ = f.postHEC(t, eventPath, good)
	assert.Equal(t, "5", response.Header.Get("Retry-After"))
	f.next.refuse(consumererror.NewPermanent(errors.New("never")), nil)
	response, answer = f.postHEC(t, eventPath, good)
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
	assert.Equal(t, hec.InvalidData, answer.Code)
	assert.Contains(t, answer.Reason, "never")
}

func TestHECTakesGzip(t *testing.T) {
	f := startFixture(t, allOfThem, false)
	body := profiletest.Gzip([]byte(`{"event": "\n\nat f(x:1)", "sourcetype": "otel.profiling"}`))
	_, answer := f.postHEC(t, eventPath, string(body), "Content-Encoding", "GZIP")
	assert.Equal(t, hec.Success, answer.Code)
	response, answer := f.postHEC(t, eventPath, "x", "Content-Encoding", "gzip")
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
	assert.Equal(t, hec.InvalidData, answer.Code)
}

// authenticator replaces an auth extension that knows one token.
type authenticator struct {
	component.StartFunc
	component.ShutdownFunc
}

func (authenticator) Authenticate(ctx context.Context, headers map[string][]string) (context.Context, error) {
	for _, value := range headers["Authorization"] {
		if value == "Splunk secret" {
			return ctx, nil
		}
	}
	return ctx, errors.New("not the token")
}

func TestHECTokens(t *testing.T) {
	f := newFixture(t, "protocols: {hec: {endpoint: 'localhost:0', auth: {authenticator: tokens}}}", false)
	require.NoError(t, f.receiver.Start(t.Context(), host{component.MustNewID("tokens"): authenticator{}}))
	good := `{"event": "\n\nat f(x:1)", "sourcetype": "otel.profiling"}`
	for header, want := range map[string]struct {
		status int
		code   hec.Code
	}{
		"":              {401, hec.TokenRequired},
		"Bearer secret": {401, hec.InvalidAuthorization},
		"Splunk":        {401, hec.InvalidAuthorization},
		"Splunk public": {403, hec.InvalidToken},
		"Splunk secret": {200, hec.Success},
	} {
		var headers []string
		if header != "" {
			headers = []string{"Authorization", header}
		}
		response, answer := f.postHEC(t, eventPath, good, headers...)
		assert.Equal(t, want.status, response.StatusCode, header)
		assert.Equal(t, want.code, answer.Code, header)
	}
}
