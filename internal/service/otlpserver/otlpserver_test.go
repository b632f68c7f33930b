// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpserver

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
)

// deliverFunc is what becomes of the records of a message.
type deliverFunc func(context.Context, *Message, plog.Logs) (int, string, error)

// start starts both servers for logs.
func start(t *testing.T, deliver deliverFunc) Servers {
	t.Helper()
	env := httpserver.Env{Host: componenttest.NewNopHost(), Telemetry: componenttest.NewNopTelemetrySettings()}
	forGRPC, forHTTP := DefaultGRPC("localhost:0"), DefaultHTTP("localhost:0")
	var servers Servers
	require.NoError(t, servers.StartOTLP(t.Context(), env, Protocols{
		GRPC: &forGRPC, HTTP: &forHTTP, MaxBytes: 1 << 20,
		Signals: func(string) ([]Signal, error) { return []Signal{Logs(deliver)}, nil },
	}))
	t.Cleanup(func() {
		require.NoError(t, servers.Shutdown(context.Background()))
		assert.Zero(t, budget.Process().HeldBytes())
	})
	return servers
}

// export sends a message over gRPC.
func export(t *testing.T, servers Servers, message []byte) (plogotlp.ExportResponse, error) {
	client, err := grpc.NewClient(servers["grpc"].Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer client.Close()
	var answer []byte
	err = client.Invoke(context.Background(), "/opentelemetry.proto.collector.logs.v1.LogsService/Export", &message,
		&answer, grpc.ForceCodecV2(httpserver.RawCodec{}))
	response := plogotlp.NewExportResponse()
	require.NoError(t, response.UnmarshalProto(answer))
	return response, err
}

// post sends a message over HTTP.
func post(t *testing.T, servers Servers, content string, message []byte) (plogotlp.ExportResponse, int) {
	answer := collectortest.Ask(t, http.MethodPost, "http://"+servers["http"].Addr().String()+"/v1/logs",
		bytes.NewReader(message), "Content-Type", content)
	assert.Equal(t, content, answer.Header.Get("Content-Type"))
	response := plogotlp.NewExportResponse()
	switch {
	case answer.StatusCode != http.StatusOK:
	case content == httpserver.ContentJSON:
		require.NoError(t, response.UnmarshalJSON([]byte(answer.Body)))
	default:
		require.NoError(t, response.UnmarshalProto([]byte(answer.Body)))
	}
	return response, answer.StatusCode
}

// What is rejected of a message, and why it is refused as a whole, is in the answer of each protocol.
func TestAnswers(t *testing.T) {
	logs := plog.NewLogs()
	logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("hello")
	message, err := plogotlp.NewExportRequestFromLogs(logs).MarshalProto()
	require.NoError(t, err)
	text, err := plogotlp.NewExportRequestFromLogs(logs).MarshalJSON()
	require.NoError(t, err)
	empty := bytes.Repeat([]byte{1<<3 | 2, 0}, 1<<18) // resources
	for name, tt := range map[string]struct {
		message, text []byte
		rejected      int
		reasons       string
		err           error
		code          codes.Code
		status        int
	}{
		"accepted":       {message, text, 0, "", nil, codes.OK, 200},
		"in part":        {message, text, 7, "too large: 7", nil, codes.OK, 200},
		"busy":           {message, text, 0, "", errors.New("busy"), codes.Unavailable, 503},
		"refused":        {message, text, 0, "", consumererror.NewPermanent(errors.New("no")), codes.InvalidArgument, 400},
		"not a message":  {[]byte{0xff}, []byte("{"), 0, "", nil, codes.InvalidArgument, 400},
		"empty messages": {empty, bytes.Repeat([]byte("[]"), 1<<18), 0, "", nil, codes.InvalidArgument, 413},
	} {
		t.Run(name, func(t *testing.T) {
			servers := start(t, func(_ context.Context, m *Message, ld plog.Logs) (int, string, error) {
				assert.Equal(t, 1, ld.LogRecordCount())
				assert.Greater(t, m.Reservation.HeldBytes(), int64(len(m.Data)))
				return tt.rejected, tt.reasons, tt.err
			})
			check := func(response plogotlp.ExportResponse) {
				assert.EqualValues(t, tt.rejected, response.PartialSuccess().RejectedLogRecords())
				assert.Equal(t, tt.reasons, response.PartialSuccess().ErrorMessage())
			}
			response, err := export(t, servers, tt.message)
			assert.Equal(t, tt.code, status.Code(err), err)
			check(response)
			for content, body := range map[string][]byte{httpserver.ContentProtobuf: tt.message,
				httpserver.ContentJSON: tt.text} {
				response, code := post(t, servers, content, body)
				assert.Equal(t, tt.status, code, content)
				check(response)
			}
		})
	}
}

// A call whose pipeline does not answer ends shortly before the deadline, so that it can still be answered.
func TestShutdownEndsCallsThatBlock(t *testing.T) {
	const drain = 4 * time.Second
	called := make(chan struct{})
	servers := start(t, func(ctx context.Context, _ *Message, _ plog.Logs) (int, string, error) {
		close(called)
		<-ctx.Done()
		return 0, "", errors.New("stopping")
	})
	answer := make(chan error, 1)
	go func() {
		_, err := export(t, servers, nil)
		answer <- err
	}()
	<-called
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), drain)
	defer cancel()
	require.NoError(t, servers.Shutdown(ctx))
	assert.GreaterOrEqual(t, time.Since(began), drain/2)
	assert.Equal(t, "stopping", status.Convert(<-answer).Message(), "the handler could answer")
}
