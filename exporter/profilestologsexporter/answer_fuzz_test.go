// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpclient"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
)

// What an answer may cost. Of an HTTP answer no more than httpclient.MaxAnswerBytes is read.
const (
	answerConstantBytes = 4 << 20
	answerPerByte       = 40
)

// roundTrip answers requests without a network.
type roundTrip func(*http.Request) *http.Response

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// answerHTTP has a peer answer a request with profiles, one with log records and one with events.
func answerHTTP(tb testing.TB, code int, contentType, retryAfter string, body []byte) {
	tb.Helper()
	client := &http.Client{Transport: roundTrip(func(r *http.Request) *http.Response {
		return &http.Response{
			StatusCode: code, Request: r, Header: http.Header{"Content-Type": {contentType}, "Retry-After": {retryAfter}},
			Body: io.NopCloser(bytes.NewReader(body)),
		}
	}), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	config := &HTTPConfig{}
	config.Client.Endpoint = "http://peer"
	common := httpclient.Client{MaxRetryAfter: time.Minute, HTTP: client}
	otlp := newHTTPPeer(config, common)
	hec := newHECPeer(&HECConfig{Client: config.Client}, common)
	ctx := context.Background()
	profiles, err := otlp.profilesRequest(newProbe())
	require.NoError(tb, err)
	logs, err := otlp.logsRequest(plog.NewLogs(), 0)
	require.NoError(tb, err)
	events, err := hec.logsRequest(plog.NewLogs(), 0)
	require.NoError(tb, err)
	for _, r := range []request{profiles, logs, events} {
		requireSound(tb, r.send(ctx))
	}
}

// requireSound checks what holds for every answer: an outcome and an error that fit, and no endless words.
func requireSound(tb testing.TB, sent answer) {
	tb.Helper()
	if sent.outcome == accepted {
		require.NoError(tb, sent.err)
		return
	}
	require.Error(tb, sent.err)
	require.Equal(tb, sent.outcome != later, consumererror.IsPermanent(sent.err))
	require.Less(tb, len(sent.err.Error()), 8*httpclient.MaxMessageBytes)
}

func answerGRPC(tb testing.TB, raw []byte) {
	tb.Helper()
	var said spb.Status
	if proto.Unmarshal(raw, &said) != nil || said.GetCode() == 0 {
		return
	}
	requireSound(tb, grpcAnswer(status.FromProto(&said).Err(), time.Minute))
}

// worstAnswers are answers that are made to cost more than they weigh.
func worstAnswers(tb testing.TB) map[string][]byte {
	marshal := func(m proto.Message) []byte {
		raw, err := proto.Marshal(m)
		require.NoError(tb, err)
		return raw
	}
	details := &spb.Status{Code: 8, Message: "too large"}
	delay, err := anypb.New(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Hour)})
	require.NoError(tb, err)
	for range 5_000 {
		details.Details = append(details.Details, delay)
	}
	return map[string][]byte{
		"many details":    marshal(details),
		"empty details":   bytes.Repeat([]byte{0x1a, 0}, 100_000),
		"long message":    marshal(&spb.Status{Code: 13, Message: strings.Repeat("Ünmarshal ", 200_000)}),
		"not UTF-8":       append([]byte{8, 13, 18, 0x80, 0x80, 0x40}, bytes.Repeat([]byte{0xff}, 1<<20)...),
		"nested JSON":     []byte(strings.Repeat(`{"rejected":[`, 40_000)),
		"JSON":            []byte(`{"rejected":9223372036854775807,"reason":"` + strings.Repeat(`\u0000`, 20_000) + `"}`),
		"gzip":            profiletest.Gzip(make([]byte, 8<<20)),
		"partial success": append([]byte{0x0a, 0x05, 0x12, 0x03}, "no!"...),
		"groups":          bytes.Repeat([]byte{0x0b}, 60_000),
	}
}

func TestAnswerIsBounded(t *testing.T) {
	profiletest.SkipLarge(t)
	for _, body := range worstAnswers(t) {
		for _, code := range []int{200, 400, 413, 429, 500, 503} {
			for _, contentType := range []string{httpserver.ContentProtobuf, "application/json"} {
				bound := profiletest.BoundOf(3*min(len(body), httpclient.MaxAnswerBytes), answerConstantBytes, answerPerByte)
				profiletest.RequireCost(t, bound, func() {
					answerHTTP(t, code, contentType, "99999999999999999999", body)
				})
			}
		}
		profiletest.RequireCost(t, profiletest.BoundOf(len(body), answerConstantBytes, answerPerByte), func() {
			answerGRPC(t, body)
		})
	}
}

func FuzzAnswer(f *testing.F) {
	for _, body := range worstAnswers(f) {
		f.Add(uint16(400), true, "3", body)
		f.Add(uint16(503), false, "Fri, 31 Dec 9999 23:59:59 GMT", body)
	}
	f.Fuzz(func(t *testing.T, code uint16, isProtobuf bool, retryAfter string, body []byte) {
		contentType := "application/json"
		if isProtobuf {
			contentType = httpserver.ContentProtobuf
		}
		profiletest.RequireCost(t, profiletest.BoundOf(4*len(body), answerConstantBytes, answerPerByte), func() {
			answerHTTP(t, 200+int(code)%400, contentType, retryAfter, body)
			answerGRPC(t, body)
		})
	})
}
