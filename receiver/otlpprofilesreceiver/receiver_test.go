// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/layouts"
	pdatasize "github.com/otelcol-profiles/otelcol-profiles/internal/otlp/size"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/decode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shared"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest/worst"
)

// harness is a running receiver.
type harness struct {
	*otlpReceiver
	client    *grpc.ClientConn
	sink      *consumertest.ProfilesSink
	logSink   *consumertest.LogsSink
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
}

func start(t *testing.T, next xconsumer.Profiles, change func(*Config)) *harness {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{
		"grpc": map[string]any{"endpoint": "localhost:0"}, "http": map[string]any{"endpoint": "localhost:0"},
	}}).Unmarshal(cfg))
	if change != nil {
		change(cfg)
	}
	h := &harness{sink: new(consumertest.ProfilesSink), logSink: new(consumertest.LogsSink),
		telemetry: componenttest.NewTelemetry()}
	if next == nil {
		next = h.sink
	}
	set := receivertest.NewNopSettings(NewFactory().Type())
	set.TelemetrySettings = h.telemetry.NewTelemetrySettings()
	core, logs := observer.New(zap.WarnLevel)
	set.Logger, h.logs = zap.New(core), logs
	forProfiles, err := NewFactory().(xreceiver.Factory).CreateProfiles(t.Context(), set, cfg, next)
	require.NoError(t, err)
	forLogs, err := NewFactory().CreateLogs(t.Context(), set, cfg, h.logSink)
	require.NoError(t, err)
	require.Same(t, forProfiles, forLogs, "the pipelines share the ports")
	for _, r := range []component.Component{forProfiles, forLogs} {
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		t.Cleanup(func() { assert.NoError(t, r.Shutdown(context.Background())) })
	}
	h.otlpReceiver = forProfiles.(*shared.Component[*Config, *otlpReceiver]).Shared
	h.client, err = grpc.NewClient(h.servers["grpc"].Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.client.Close()) })
	return h
}

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	return profiletest.FileBytes(t, filepath.Join("..", "..", "internal", "otlp", "layouts", "testdata", name))
}

func current(t *testing.T) (pprofile.Profiles, []byte) {
	t.Helper()
	pd := profiletest.New().Resource("service.name", "shop").Profile("samples", "count").
		Sample(profiletest.Value(3, "leaf", "main")).Build()
	sent := pprofile.NewProfiles() // marshalling changes what it marshals
	pd.CopyTo(sent)
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(sent)
	require.NoError(t, err)
	return pd, data
}

func (h *harness) post(t *testing.T, path, content string, body []byte, headers ...string) (int, string, http.Header) {
	t.Helper()
	a := collectortest.Ask(t, http.MethodPost, "http://"+h.servers["http"].Addr().String()+path, bytes.NewReader(body),
		append(headers, "Content-Type", content)...)
	return a.StatusCode, a.Body, a.Header
}

func (h *harness) export(t *testing.T, service string, body []byte) error {
	t.Helper()
	_, err := h.exportAnswer(t, service, body)
	return err
}

func (h *harness) exportAnswer(t *testing.T, service string, body []byte) (answer []byte, err error) {
	err = h.client.Invoke(t.Context(), "/"+service+"/Export", &body, &answer, grpc.ForceCodecV2(httpserver.RawCodec{}))
	return answer, err
}

// Every layout arrives by every protocol, with the same content.
func TestReceivesEveryLayoutByEveryWay(t *testing.T) {
	h := start(t, nil, nil)
	sent := 0
	for _, name := range []string{"111", "116", "124", "133", "136", "145"} {
		want, _, err := layouts.Unmarshal(fixture(t, name+".pb"), nil)
		require.NoError(t, err)
		requireArrived := func() {
			t.Helper()
			sent++
			all := h.sink.AllProfiles()
			require.Len(t, all, sent)
			require.NoError(t, profiletest.Equal(want, all[sent-1]))
		}
		for _, path := range paths {
			code, answer, _ := h.post(t, path, "application/x-protobuf", fixture(t, name+".pb"))
			require.Equal(t, http.StatusOK, code)
			require.Equal(t, "\n\x00", answer, "an empty partial success: everything was read")
			requireArrived()
			code, answer, _ = h.post(t, path, "application/json; charset=utf-8", fixture(t, name+".json"))
			require.Equal(t, http.StatusOK, code, answer)
			requireArrived()
		}
		for _, service := range services {
			require.NoError(t, h.export(t, service, fixture(t, name+".pb")))
			requireArrived()
		}
	}
	lines := h.logs.FilterMessageSnippet("old layout").All()
	require.Len(t, lines, 6-1, "one for each sender and layout; 1.4 came twice")
	require.Contains(t, []any{"127.0.0.1", "::1"}, lines[0].ContextMap()["sender"])

	total := int64(0)
	for layout, n := range map[string]int64{"1.3": 6, "1.4": 12, "1.7": 6, "1.8": 6, "1.9": 4, "1.10": 2} {
		require.Equal(t, n, collectortest.Sum(t, h.telemetry, "otelcol_receiver_otlp_profiles_requests", "layout", layout),
			layout)
		total += n
	}
	require.Equal(t, total, collectortest.Sum(t, h.telemetry, "otelcol_receiver_otlp_profiles_requests"))
}

// Samples that cannot be read are reported as a partial success by every way. What was sent arrives or is counted.
func TestReportsDroppedSamples(t *testing.T) {
	h := start(t, nil, nil)
	sent := 0
	check := func(unmarshal func(pprofileotlp.ExportResponse) error) {
		t.Helper()
		sent += 4
		response := pprofileotlp.NewExportResponse()
		require.NoError(t, unmarshal(response))
		assert.EqualValues(t, 1, response.PartialSuccess().RejectedProfiles())
		assert.Equal(t, "2 samples of 1 profiles were dropped, since they cannot be read: no_observation: 1, stack_range: 1",
			response.PartialSuccess().ErrorMessage())
	}
	for _, layout := range []string{"1.3", "1.4", "1.6", "1.7"} {
		data, text := fixture(t, "ranges/"+layout+".pb"), fixture(t, "ranges/"+layout+".json")
		for _, service := range services {
			answer, err := h.exportAnswer(t, service, data)
			require.NoError(t, err)
			check(func(r pprofileotlp.ExportResponse) error { return r.UnmarshalProto(answer) })
		}
		for _, path := range paths {
			code, answer, _ := h.post(t, path, "application/x-protobuf", data)
			require.Equal(t, http.StatusOK, code)
			check(func(r pprofileotlp.ExportResponse) error { return r.UnmarshalProto([]byte(answer)) })
			code, answer, _ = h.post(t, path, "application/json", text)
			require.Equal(t, http.StatusOK, code)
			check(func(r pprofileotlp.ExportResponse) error { return r.UnmarshalJSON([]byte(answer)) })
		}
	}
	arrived := 0
	for _, pd := range h.sink.AllProfiles() {
		arrived += pd.SampleCount()
	}
	const counter = "otelcol_receiver_otlp_profiles_dropped_samples"
	assert.EqualValues(t, sent-arrived, collectortest.Sum(t, h.telemetry, counter))
	assert.EqualValues(t, sent/4, collectortest.Sum(t, h.telemetry, counter, "reason", "no_observation"))
	assert.EqualValues(t, arrived, collectortest.Sum(t, h.telemetry, "otelcol_receiver_accepted_profile_samples"))
}

// A request of which nothing can be read is a partial success too: the sender must not send it again.
func TestReportsRequestsOfWhichNothingIsLeft(t *testing.T) {
	h := start(t, nil, nil)
	text := bytes.ReplaceAll(fixture(t, "ranges/1.4.json"), []byte(`"locationsLength":`), []byte(`"locationsLength":10`))
	code, answer, _ := h.post(t, paths[0], "application/json", text)
	require.Equal(t, http.StatusOK, code)
	require.JSONEq(t, `{"partialSuccess":{"rejectedProfiles":"1",
		"errorMessage":"4 samples of 1 profiles were dropped, since they cannot be read: stack_range: 4"}}`, answer)
	require.Empty(t, h.sink.AllProfiles())
}

// Today's layout has no ranges, but indices: a sample that leads to one out of range is reported as well, and the
// others arrive.
func TestReportsSamplesOfTodaysLayout(t *testing.T) {
	h := start(t, nil, nil)
	post := func(pd pprofile.Profiles) string {
		text, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(pd)
		require.NoError(t, err)
		code, answer, _ := h.post(t, paths[0], "application/json", text)
		require.Equal(t, http.StatusOK, code)
		return answer
	}
	pd := profiletest.New().Profile("cpu", "nanoseconds").Sample(profiletest.Value(1, "read"), profiletest.Value(2, "broken"),
		profiletest.Value(3, "write"), profiletest.Value(4, "main"), profiletest.Value(5, "read", "main")).Build()
	samples := profiletest.ProfileAt(pd, 0).Samples()
	pd.Dictionary().FunctionTable().At(2).SetFilenameStrindex(99)
	samples.At(2).SetStackIndex(-1)
	samples.At(3).Values().FromRaw(nil)
	require.JSONEq(t, `{"partialSuccess":{"rejectedProfiles":"1","errorMessage":
		"3 samples of 1 profiles were dropped, since they cannot be read: stack_index: 1, string_index: 1, no_observation: 1"}}`,
		post(pd))
	arrived := profiletest.ProfileAt(h.sink.AllProfiles()[0], 0).Samples()
	require.Equal(t, 2, arrived.Len())
	require.EqualValues(t, 5, arrived.At(1).Values().At(0))

	pprofile.NewProfilesDictionary().CopyTo(pd.Dictionary())
	require.Contains(t, post(pd), `"5 samples of 1 profiles were dropped, since they cannot be read: stack_index: 4, no_observation: 1"`)
	require.EqualValues(t, 3+5, collectortest.Sum(t, h.telemetry, "otelcol_receiver_otlp_profiles_dropped_samples"))
}

// Logs arrive by every way, on the ports of profiles, and hold budget while the pipeline has them.
func TestReceivesLogs(t *testing.T) {
	h := start(t, nil, nil)
	want := plog.NewLogs()
	record := want.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.Body().SetStr("hello")
	request := plogotlp.NewExportRequestFromLogs(want)
	data, err := request.MarshalProto()
	require.NoError(t, err)
	text, err := request.MarshalJSON()
	require.NoError(t, err)

	require.NoError(t, h.export(t, "opentelemetry.proto.collector.logs.v1.LogsService", data))
	for content, body := range map[string][]byte{"application/x-protobuf": data, "application/json": text} {
		code, answer, _ := h.post(t, "/v1/logs", content, body)
		require.Equal(t, http.StatusOK, code, answer)
	}
	arrived := h.logSink.AllLogs()
	require.Len(t, arrived, 3)
	for _, got := range arrived {
		assert.Equal(t, want, got)
	}
	assert.EqualValues(t, 1, collectortest.Sum(t, h.telemetry, "otelcol_receiver_accepted_log_records", "transport",
		"grpc"))
	assert.EqualValues(t, 2, collectortest.Sum(t, h.telemetry, "otelcol_receiver_accepted_log_records", "transport",
		"http"))
	assert.Empty(t, h.sink.AllProfiles())

	_, answer, _ := h.post(t, paths[0], "application/x-protobuf", []byte("\x1f\x8b\x08"))
	assert.Contains(t, answer, "a pprof goes to the receiver pprof")
	code, answer, _ := h.post(t, "/v1/logs", "application/x-protobuf", []byte("\xff"))
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Contains(t, answer, "not a message of protobuf")
	_, profiles := current(t)
	_, metrics, _ := otherSignals(t)
	for body, content := range map[string]string{
		string(profiles): "application/x-protobuf", string(metrics): "application/x-protobuf",
		`{"resourceProfiles":[{}],"dictionary":{}}`: "application/json", `{"resourceSpans":[{}]}`: "application/json",
	} {
		code, answer, _ = h.post(t, "/v1/logs", content, []byte(body))
		assert.Equal(t, http.StatusBadRequest, code, body)
		assert.Contains(t, answer, "profiles go to /v1development/profiles")
	}
	for _, body := range []string{`{}`, `{"resourceLogs":[]}`, `{"resource_logs":[]}`} {
		code, answer, _ = h.post(t, "/v1/logs", "application/json", []byte(body))
		assert.Equal(t, http.StatusOK, code, answer)
	}
	code, _, _ = h.post(t, "/v1/logs", "application/x-protobuf", bytes.Repeat([]byte{1<<3 | 2, 0}, 1<<18))
	assert.Equal(t, http.StatusRequestEntityTooLarge, code, "mostly empty messages")
	require.Eventually(t, func() bool { return budget.Process().HeldBytes() == 0 }, 20*time.Second, time.Millisecond)
}

// Log records hold the budget until the pipeline has accepted them; what it refuses is answered as for profiles.
func TestLogsAreCharged(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Protocols.HTTP.GetOrInsertDefault().Server.NetAddr.Endpoint = "localhost:0"
	refused := errors.New("queue is full")
	next, err := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error {
		assert.Greater(t, budget.Process().HeldBytes(), int64(1<<20))
		return refused
	})
	require.NoError(t, err)
	r, err := newReceiver(receivertest.NewNopSettings(NewFactory().Type()), cfg)
	require.NoError(t, err)
	r.logs = next
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	h := &harness{otlpReceiver: r}
	logs := plog.NewLogs()
	logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetEmptyBytes().
		FromRaw(make([]byte, 1<<20))
	data, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	require.NoError(t, err)
	code, answer, header := h.post(t, "/v1/logs", "application/x-protobuf", data)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, answer, "queue is full")
	assert.NotEmpty(t, header.Get("Retry-After"))
	refused = consumererror.NewPermanent(errors.New("no"))
	code, _, _ = h.post(t, "/v1/logs", "application/x-protobuf", data)
	assert.Equal(t, http.StatusBadRequest, code)

	code, answer, _ = h.post(t, paths[0], "application/x-protobuf", data)
	assert.Equal(t, http.StatusNotFound, code, "there is no profiles pipeline")
	assert.Contains(t, answer, "nothing is here: send logs to /v1/logs")
	_, answer, _ = h.post(t, "/v1/pprof", "application/x-protobuf", data)
	assert.Contains(t, answer, "receiver pprof, by default on port 4040")
	assert.Contains(t, answer, "log records of Splunk's agents to 4328")
}

// Today's layout arrives from the Collector's own client, and nothing is logged.
func TestReceivesTodaysLayout(t *testing.T) {
	h := start(t, nil, nil)
	want, data := current(t)
	sent, _ := current(t)
	answer, err := pprofileotlp.NewGRPCClient(h.client).
		Export(t.Context(), pprofileotlp.NewExportRequestFromProfiles(sent))
	require.NoError(t, err)
	require.Zero(t, answer.PartialSuccess().RejectedProfiles())
	code, body, header := h.post(t, paths[0], "application/x-protobuf", profiletest.Gzip(data), "Content-Encoding", "Gzip")
	require.Equal(t, http.StatusOK, code, body)
	require.Equal(t, "application/x-protobuf", header.Get("Content-Type"))
	require.NoError(t, pprofileotlp.NewExportResponse().UnmarshalProto([]byte(body)))
	require.Len(t, h.sink.AllProfiles(), 2)
	for _, got := range h.sink.AllProfiles() {
		require.NoError(t, profiletest.Equal(want, got))
	}
	require.Zero(t, h.logs.Len())
}

// otherSignals returns a message of each other signal.
func otherSignals(t *testing.T) (logs, metrics, traces []byte) {
	ld, md, td := plog.NewLogs(), pmetric.NewMetrics(), ptrace.NewTraces()
	record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetTimestamp(1)
	record.SetSeverityNumber(plog.SeverityNumberInfo)
	record.Body().SetStr("hello")
	metric := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName("requests")
	metric.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(1)
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("GET")
	span.SetTraceID([16]byte{1, 2, 3})
	span.SetStartTimestamp(1)
	var errs [3]error
	logs, errs[0] = (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	metrics, errs[1] = (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	traces, errs[2] = (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, errors.Join(errs[:]...))
	return logs, metrics, traces
}

func TestAnswersSayWhatToDo(t *testing.T) {
	_, data := current(t)
	function := &profile.Function{ID: 1, Name: "main"}
	location := &profile.Location{ID: 1, Line: []profile.Line{{Function: function}}}
	var pprof bytes.Buffer
	require.NoError(t, (&profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, Function: []*profile.Function{function},
		Location: []*profile.Location{location},
		Sample:   []*profile.Sample{{Location: []*profile.Location{location}, Value: []int64{1}}},
	}).WriteUncompressed(&pprof))
	logs, metrics, traces := otherSignals(t)
	for name, tt := range map[string]struct {
		next       error
		body       []byte
		content    string
		path       string
		code       int
		grpc       codes.Code
		retryAfter bool
		message    string
	}{
		"not protobuf": {nil, []byte("\xff\xff\xff\xff"), "", "", 400, codes.InvalidArgument, false, "read OTLP profiles"},
		"a pprof": {nil, pprof.Bytes(), "", "", 400, codes.InvalidArgument, false,
			"not a message of OTLP; a pprof goes to the receiver pprof"},
		"logs":        {nil, logs, "", "", 400, codes.InvalidArgument, false, "read OTLP profiles"},
		"metrics":     {nil, metrics, "", "", 400, codes.InvalidArgument, false, "read OTLP profiles"},
		"traces":      {nil, traces, "", "", 400, codes.InvalidArgument, false, "these are not profiles"},
		"no profiles": {nil, []byte(`{"resourceProfiles":[]}`), "application/json", "", 200, 0, false, "partialSuccess"},
		"JSON of logs": {nil, []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}]}`), "application/json", "", 400, 0,
			false, "not profiles: logs, metrics and traces go to the receiver otlp"},
		"JSON as protobuf": {nil, []byte(`{"resourceProfiles":[]}`), "", "", 400, 0, false,
			"it is JSON, whose Content-Type is application/json"},
		"not JSON":     {nil, []byte("hello"), "application/json", "", 400, 0, false, "not JSON"},
		"text":         {nil, data, "text/plain", "", 415, 0, false, "is not accepted"},
		"another path": {nil, data, "", "/v1/profiles", 404, 0, false, "send profiles to /v1development/profiles"},
		"too large":    {nil, make([]byte, 2<<20), "", "", 413, codes.ResourceExhausted, false, "larger"},
		"busy":         {errors.New("queue is full"), data, "", "", 503, codes.Unavailable, true, "queue is full"},
		"never welcome": {consumererror.NewPermanent(errors.New("no")), data, "", "", 400, codes.InvalidArgument, false,
			"no"},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, consumertest.NewErr(tt.next), func(c *Config) {
				c.Protocols.HTTP.Get().Server.MaxRequestBodySize = 2000
				c.Protocols.GRPC.Get().Server.MaxRecvMsgSizeMiB = 1
			})
			content, path := tt.content, tt.path
			if content == "" {
				content = "application/x-protobuf"
			}
			if path == "" {
				path = paths[0]
			}
			// A longer body would be cut off before the client reads the answer.
			code, answer, header := h.post(t, path, content, tt.body[:min(len(tt.body), 4000)])
			assert.Equal(t, tt.code, code)
			assert.Contains(t, answer, tt.message)
			assert.Equal(t, tt.retryAfter, header.Get("Retry-After") != "")
			if tt.grpc != 0 {
				err := h.export(t, services[0], tt.body)
				assert.Equal(t, tt.grpc, status.Code(err))
				assert.Contains(t, err.Error(), tt.message)
			}
		})
	}
}

// The version that a sender states determines the layout, and an unknown version is refused before anything is read.
func TestStatedVersions(t *testing.T) {
	h := start(t, nil, nil)
	_, data := current(t)
	for version, want := range map[string]int{"1": 200, "2": 400, "": 400, "x": 400} {
		code, answer, _ := h.post(t, paths[0], "application/x-protobuf", data, "OTLP-Profiles-Development-Version", version)
		assert.Equal(t, want, code, "%q: %s", version, answer)
		var none []byte
		ctx := metadata.AppendToOutgoingContext(t.Context(), versionHeader, version)
		err := h.client.Invoke(ctx, "/"+services[0]+"/Export", &data, &none, grpc.ForceCodecV2(httpserver.RawCodec{}))
		assert.Equal(t, want == 200, err == nil, "%q: %v", version, err)
	}
	code, answer, _ := h.post(t, paths[0], "application/x-protobuf", fixture(t, "136.pb"),
		"OTLP-Profiles-Development-Version", "1")
	assert.Equal(t, 400, code, "not read as an old layout")
	assert.Contains(t, answer, "read OTLP profiles")
	require.Len(t, h.sink.AllProfiles(), 2)
}

func TestRefusesOtherMethodsAndOrigins(t *testing.T) {
	h := start(t, nil, nil)
	response := collectortest.Ask(t, http.MethodGet, "http://"+h.servers["http"].Addr().String()+paths[0], nil)
	require.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
	require.Equal(t, http.MethodPost, response.Header.Get("Allow"))
	_, data := current(t)
	code, _, _ := h.post(t, paths[0], "application/x-protobuf", data, "Origin", "http://elsewhere.example")
	require.Equal(t, http.StatusForbidden, code)
}

// A pipeline that does not answer delays the shutdown of either server until its deadline at most.
func TestShutdownEndsInTime(t *testing.T) {
	arrived := make(chan struct{}, 2)
	next, err := xconsumer.NewProfiles(func(ctx context.Context, _ pprofile.Profiles) error {
		arrived <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}, consumer.WithCapabilities(consumer.Capabilities{}))
	require.NoError(t, err)
	h := start(t, next, nil)
	_, data := current(t)
	answers := make(chan string, 2)
	go func() {
		code, _, _ := h.post(t, paths[0], "application/x-protobuf", data)
		answers <- fmt.Sprint("http ", code)
	}()
	go func() { answers <- "grpc " + status.Code(h.export(t, services[0], data)).String() }()
	<-arrived
	<-arrived
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	require.NoError(t, h.Shutdown(ctx))
	require.Less(t, time.Since(began), 20*time.Second)
	require.ElementsMatch(t, []string{"http 503", "grpc Unavailable"}, []string{<-answers, <-answers})
}

// Requests of an old layout that expand much wait for each other, since the pipeline holds their profiles.
func TestExpandingRequestsWaitForEachOther(t *testing.T) {
	var mu sync.Mutex
	var running, most, largest int64
	next, err := xconsumer.NewProfiles(func(_ context.Context, pd pprofile.Profiles) error {
		mu.Lock()
		running++
		most, largest = max(most, running), max(largest, budget.Process().HeldBytes())
		mu.Unlock()
		time.Sleep(50 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		running--
		return nil
	})
	require.NoError(t, err)
	budget.SetMemoryLimit(320 << 20)
	defer budget.SetMemoryLimit(math.MaxInt64)
	process := budget.Process()
	h := start(t, next, nil)
	data := worst.OTLP["few types and many samples"](200_000)
	for _, send := range []func() error{
		func() error { return h.export(t, services[0], bytes.Clone(data)) },
		func() error {
			if code, answer, _ := h.post(t, paths[0], "application/x-protobuf", bytes.Clone(data)); code != http.StatusOK {
				return errors.New(answer)
			}
			return nil
		},
	} {
		most, largest = 0, 0
		var senders sync.WaitGroup
		for range 8 {
			senders.Go(func() {
				assert.Eventually(t, func() bool { return send() == nil }, time.Minute, time.Millisecond)
			})
		}
		senders.Wait()
		assert.LessOrEqual(t, most, int64(6))
		assert.Greater(t, largest, int64(40*len(data)), "the profiles count")
		assert.LessOrEqual(t, largest, int64(120<<20))
	}
	require.Eventually(t, func() bool { return process.HeldBytes() == 0 }, 20*time.Second, time.Millisecond)
}

// While the pipeline has the profiles of a request, the budget has their size.
func TestProfilesAreCharged(t *testing.T) {
	process := budget.Process()
	var size atomic.Int64
	next, err := xconsumer.NewProfiles(func(_ context.Context, pd pprofile.Profiles) error {
		size.Store(int64(pdatasize.OfProfiles(pd)))
		assert.Equal(t, size.Load(), process.HeldBytes())
		return nil
	})
	require.NoError(t, err)
	h := start(t, next, nil)
	payload, err := os.ReadFile(filepath.Join("..", "..", "testdata", "pprof", "go-build-merged-cpu-large.pb.gz"))
	require.NoError(t, err)
	pd, _, err := decode.Decode(payload, decode.Options{})
	require.NoError(t, err)
	text, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(pd)
	require.NoError(t, err)
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(t, err)
	requireReleased := func() {
		require.Eventually(t, func() bool { return process.HeldBytes() == 0 }, 20*time.Second, time.Millisecond)
	}
	for _, body := range [][]byte{data, fixture(t, "136.pb"), fixture(t, "116.pb")} {
		requireReleased()
		require.NoError(t, h.export(t, services[0], bytes.Clone(body)))
		assert.Greater(t, size.Load(), int64(3*len(body)))
		requireReleased()
		code, answer, _ := h.post(t, paths[0], "application/x-protobuf", body)
		require.Equal(t, http.StatusOK, code, answer)
	}
	requireReleased()
	code, answer, _ := h.post(t, paths[0], "application/json", text)
	require.Equal(t, http.StatusOK, code, answer)
	requireReleased()
}

func TestConfig(t *testing.T) {
	for name, tt := range map[string]struct {
		yaml map[string]any
		want string
	}{
		"nothing":        {map[string]any{}, "must have `grpc`, `http` or both"},
		"an unknown key": {map[string]any{"protocols": map[string]any{"http": map[string]any{"endpont": "x"}}}, "endpont"},
		"an empty endpoint": {map[string]any{"protocols": map[string]any{"grpc": map[string]any{"endpoint": ""}}},
			"protocols::grpc: `endpoint` must be set"},
		"an unknown encoding": {
			map[string]any{"protocols": map[string]any{"http": map[string]any{"compression_algorithms": []any{"brotli"}}}},
			"`compression_algorithms` must be among"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := collectortest.LoadConfig(createDefaultConfig().(*Config), tt.yaml)
			require.ErrorContains(t, err, tt.want)
		})
	}
}
