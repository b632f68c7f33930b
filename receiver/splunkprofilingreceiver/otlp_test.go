// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/records"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// sender sends a request, and returns the answer or an error with a status.
type sender func(t *testing.T, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error)

// senders returns a sender for each form of OTLP.
func senders(f *fixture) map[string]sender {
	return map[string]sender{
		"grpc": f.sendGRPC,
		"http protobuf": func(t *testing.T, r plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
			return f.sendHTTP(t, r, httpserver.ContentProtobuf)
		},
		"http json": func(t *testing.T, r plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
			return f.sendHTTP(t, r, httpserver.ContentJSON)
		},
	}
}

func (f *fixture) sendGRPC(t *testing.T, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	return plogotlp.NewGRPCClient(f.dial(t)).Export(t.Context(), request)
}

// post posts a body with headers (key, value, ...).
func post(t testing.TB, url string, body []byte, headers ...string) collectortest.Answer {
	t.Helper()
	return collectortest.Ask(t, http.MethodPost, url, bytes.NewReader(body), headers...)
}

func (f *fixture) sendHTTP(
	t *testing.T, request plogotlp.ExportRequest, content string,
) (plogotlp.ExportResponse, error) {
	body, err := request.MarshalProto()
	if content == httpserver.ContentJSON {
		body, err = request.MarshalJSON()
	}
	require.NoError(t, err)
	response := post(t, "http://"+f.address("http")+"/v1/logs", body, "Content-Type", content+"; charset=utf-8")
	assert.Equal(t, content, response.Header.Get("Content-Type"))
	if response.StatusCode != http.StatusOK {
		failed := &spb.Status{}
		if content == httpserver.ContentJSON {
			require.NoError(t, protojson.Unmarshal([]byte(response.Body), failed))
		} else {
			require.NoError(t, proto.Unmarshal([]byte(response.Body), failed))
		}
		s := status.FromProto(failed)
		assert.Equal(t, otlpstatus.ToHTTP(s), response.StatusCode)
		if otlpstatus.IsRetryable(s.Code()) {
			assert.Equal(t, "7", response.Header.Get("Retry-After"))
		} else {
			assert.Empty(t, response.Header.Get("Retry-After"))
		}
		return plogotlp.ExportResponse{}, s.Err()
	}
	taken := plogotlp.NewExportResponse()
	if content == httpserver.ContentJSON {
		return taken, taken.UnmarshalJSON([]byte(response.Body))
	}
	return taken, taken.UnmarshalProto([]byte(response.Body))
}

// Every captured request, over every form of OTLP, becomes the translator's output.
func TestCapturedRequests(t *testing.T) {
	f := startFixture(t, allOfThem, false)
	for name, send := range senders(f) {
		t.Run(name, func(t *testing.T) {
			for file, body := range captured(t) {
				want := records.Translate(requestOf(t, body).Logs(), records.Options{}).Profiles
				response, err := send(t, requestOf(t, body))
				require.NoError(t, err)
				assert.Zero(t, response.PartialSuccess().RejectedLogRecords())
				profiles, _ := f.next.drain()
				if want.ProfileCount() == 0 {
					assert.Empty(t, profiles, file)
					continue
				}
				require.Len(t, profiles, 1)
				assert.NoError(t, profiletest.Equal(want, profiles[0]), file)
			}
		})
	}
	for metric, want := range map[string]int64{"records": 27, "profiles": 21, "rejected_records": 0} {
		assert.Equal(t, want, f.sum("otelcol_receiver_splunk_profiling_"+metric), metric)
	}
	assert.EqualValues(t, 3, f.sum("otelcol_receiver_splunk_profiling_records", "format", "pprof-gzip-base64", "type",
		"cpu", "source", "snapshot"))
	assert.Positive(t, f.sum("otelcol_receiver_splunk_profiling_samples"))
	assert.Positive(t, f.sum("otelcol_receiver_splunk_profiling_repaired", "fault", "negative_line"))
	assert.Positive(t, f.sum("otelcol_receiver_accepted_profile_samples", "transport", "grpc"))
}

// incomplete returns two records that have two samples each, of which one cannot be read: a pprof and OTLP.
func incomplete(t *testing.T) plog.Logs {
	t.Helper()
	field := func(number protowire.Number, content ...byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
	}
	pprof := slices.Concat(field(2, 8, 1, 16, 1), field(2, 8, 77, 16, 1), field(4, 8, 1), field(6))
	pd := profiletest.New().Profile("samples", "count").
		Sample(profiletest.Value(3, "leaf", "main")).Sample(profiletest.Value(4, "main")).Build()
	profiletest.SampleAt(pd, 1).SetStackIndex(9999)
	otlp, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(t, err)
	ld := plog.NewLogs()
	sl := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	sl.Scope().SetName("otel.profiling")
	record := sl.LogRecords().AppendEmpty()
	record.Body().SetStr(base64.StdEncoding.EncodeToString(pprof))
	record.Attributes().PutStr("profiling.data.format", "pprof-gzip-base64")
	record.Attributes().PutStr("profiling.data.type", "cpu")
	record = sl.LogRecords().AppendEmpty()
	record.Body().SetEmptyBytes().FromRaw(otlp)
	record.Attributes().PutStr("profiling.data.format", "otlp")
	return ld
}

// Samples that are dropped of records that were read are reported. What was sent arrives or is counted.
func TestReportsDroppedSamples(t *testing.T) {
	f := startFixture(t, allOfThem, false)
	sent, arrived := int64(0), 0
	for name, send := range senders(f) {
		t.Run(name, func(t *testing.T) {
			response, err := send(t, plogotlp.NewExportRequestFromLogs(incomplete(t)))
			require.NoError(t, err)
			assert.EqualValues(t, 2, response.PartialSuccess().RejectedLogRecords())
			assert.Equal(t, "2 samples of 2 records were dropped: unknown_location: 1, malformed: 1",
				response.PartialSuccess().ErrorMessage())
			profiles, _ := f.next.drain()
			require.Len(t, profiles, 1)
			sent, arrived = sent+4, arrived+profiles[0].SampleCount()
		})
	}
	assert.Equal(t, sent, int64(arrived)+f.sum("otelcol_receiver_splunk_profiling_dropped_samples"))
}

// With a logs pipeline the rest passes through; only a record that cannot be read is rejected.
func TestMixedTrafficWithLogs(t *testing.T) {
	f := startFixture(t, allOfThem, true)
	for name, send := range senders(f) {
		t.Run(name, func(t *testing.T) {
			response, err := send(t, plogotlp.NewExportRequestFromLogs(mixed()))
			require.NoError(t, err)
			assert.EqualValues(t, 1, response.PartialSuccess().RejectedLogRecords())
			assert.Contains(t, response.PartialSuccess().ErrorMessage(), "record 2: no line of the text is a stack frame")
			profiles, logs := f.next.drain()
			require.Len(t, profiles, 1)
			require.Len(t, logs, 1)
			want := mixed()
			want.ResourceLogs().At(0).ScopeLogs().RemoveIf(func(sl plog.ScopeLogs) bool {
				return sl.Scope().Name() == "otel.profiling"
			})
			want.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().RemoveIf(func(r plog.LogRecord) bool {
				return r.Body().Str() == "garbage"
			})
			assert.Equal(t, want, logs[0])
		})
	}
	assert.EqualValues(t, 3, f.sum("otelcol_receiver_splunk_profiling_rejected_records", "reason", "not_a_stack"))
	assert.EqualValues(t, 3, f.sum("otelcol_receiver_accepted_log_records"))
}

func TestMixedTrafficWithoutLogs(t *testing.T) {
	f := startFixture(t, allOfThem, false)
	for name, send := range senders(f) {
		t.Run(name, func(t *testing.T) {
			response, err := send(t, plogotlp.NewExportRequestFromLogs(mixed()))
			require.NoError(t, err)
			assert.EqualValues(t, 2, response.PartialSuccess().RejectedLogRecords())
			assert.Contains(t, response.PartialSuccess().ErrorMessage(),
				"1 records carry no profile, and there is no logs pipeline for them")
			profiles, logs := f.next.drain()
			assert.Len(t, profiles, 1)
			assert.Empty(t, logs)
		})
	}
	assert.EqualValues(t, 3, f.sum("otelcol_receiver_splunk_profiling_rejected_records", "reason", "not_profiling"))
}

func TestOrdinaryLogsPassThrough(t *testing.T) {
	f := startFixture(t, allOfThem, true)
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("hello")
	want := plog.NewLogs()
	ld.CopyTo(want)
	_, err := f.sendGRPC(t, plogotlp.NewExportRequestFromLogs(ld))
	require.NoError(t, err)
	profiles, logs := f.next.drain()
	assert.Empty(t, profiles)
	require.Len(t, logs, 1)
	assert.Equal(t, want, logs[0])
	_, err = f.sendGRPC(t, plogotlp.NewExportRequest())
	require.NoError(t, err, "an empty request")
}

// throttled is the error of a pipeline under pressure.
func throttled(t *testing.T, code codes.Code) error {
	t.Helper()
	s, err := status.New(code, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(6100_000_000)})
	require.NoError(t, err)
	return s.Err()
}

func TestRefusals(t *testing.T) {
	f := startFixture(t, allOfThem, true)
	permanent := consumererror.NewPermanent(errors.New("never"))
	for name, send := range senders(f) {
		for _, tc := range []struct {
			name           string
			profiles, logs error
			code           codes.Code
		}{
			{"profiles for now", throttled(t, codes.Unavailable), nil, codes.Unavailable},
			{"profiles throttled", throttled(t, codes.ResourceExhausted), nil, codes.ResourceExhausted},
			{"logs for now", nil, throttled(t, codes.Unavailable), codes.Unavailable},
			{"both for good", permanent, permanent, codes.InvalidArgument},
			{"profiles for good, logs for now", permanent, throttled(t, codes.Unavailable), codes.Unavailable},
		} {
			t.Run(name+" "+tc.name, func(t *testing.T) {
				f.next.refuse(tc.profiles, tc.logs)
				_, err := send(t, plogotlp.NewExportRequestFromLogs(mixed()))
				s := status.Convert(err)
				assert.Equal(t, tc.code, s.Code(), s)
				if otlpstatus.IsRetryable(tc.code) {
					assert.EqualValues(t, int64(6100_000_000), otlpstatus.RetryDelay(s.Err()))
				}
			})
		}
		t.Run(name+" one part for good", func(t *testing.T) {
			f.next.refuse(permanent, nil)
			response, err := send(t, plogotlp.NewExportRequestFromLogs(mixed()))
			require.NoError(t, err)
			assert.EqualValues(t, 2, response.PartialSuccess().RejectedLogRecords())
			assert.Contains(t, response.PartialSuccess().ErrorMessage(), "never")
			f.next.refuse(nil, permanent)
			response, err = send(t, plogotlp.NewExportRequestFromLogs(mixed()))
			require.NoError(t, err)
			assert.EqualValues(t, 2, response.PartialSuccess().RejectedLogRecords())
		})
	}
}
