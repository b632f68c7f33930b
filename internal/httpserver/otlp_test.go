// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// An error after which the sender should retry has a delay; a permanent error is never a status after which senders retry.
func TestOTLPStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		err       error
		want      codes.Code
		http      int
		retryable bool
	}{
		"any error":           {errors.New("queue is full"), codes.Unavailable, http.StatusServiceUnavailable, true},
		"throttled":           {consumererror.NewOTLPHTTPError(errors.New("x"), 429), codes.ResourceExhausted, http.StatusTooManyRequests, true},
		"unknown":             {status.Error(codes.Unknown, "x"), codes.Unavailable, http.StatusServiceUnavailable, true},
		"permanent":           {consumererror.NewPermanent(errors.New("x")), codes.InvalidArgument, http.StatusBadRequest, false},
		"not UTF-8":           {consumererror.NewPermanent(errors.New("\xff")), codes.InvalidArgument, http.StatusBadRequest, false},
		"not UTF-8, yet busy": {errors.New("\xff"), codes.Unavailable, http.StatusServiceUnavailable, true},
		"permanent, yet busy": {consumererror.NewPermanent(status.Error(codes.Unavailable, "x")), codes.InvalidArgument, http.StatusBadRequest, false},
		"permanent, denied":   {consumererror.NewPermanent(status.Error(codes.PermissionDenied, "x")), codes.PermissionDenied, http.StatusForbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := OTLPStatus(tt.err)
			assert.Equal(t, tt.want, s.Code())
			assert.Equal(t, tt.retryable, RetryDelay(s.Err()) > 0)
			_, err := proto.Marshal(s.Proto()) // as gRPC does if there are details
			assert.NoError(t, err)
			for content, body := range map[string]string{ContentProtobuf: "\x08", ContentJSON: `"code":`} {
				w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil)
				r.Header.Set("Content-Type", content)
				AnswerOTLPStatus(w, r, s)
				assert.Equal(t, tt.http, w.Code)
				assert.Equal(t, content, w.Header().Get("Content-Type"))
				assert.Contains(t, w.Body.String(), body)
				assert.Equal(t, tt.retryable, w.Header().Get("Retry-After") != "")
			}
		})
	}
}

// blockingService answers when its call's context ends.
type blockingService struct {
	healthgrpc.UnimplementedHealthServer
	called chan struct{}
}

func (s *blockingService) Check(ctx context.Context, _ *healthgrpc.HealthCheckRequest) (*healthgrpc.HealthCheckResponse, error) {
	close(s.called)
	<-ctx.Done()
	return nil, status.Error(codes.Unavailable, "stopping")
}

func TestGRPCShutdownEndsCallsThatBlock(t *testing.T) {
	const drain = 400 * time.Millisecond
	life := NewGRPC(Options{DrainTimeout: drain, OnFailure: func(err error) { t.Error(err) }})
	require.NoError(t, NewGRPC(Options{}).Shutdown(t.Context()), "one that never served")
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		ctx, cancel := life.Context(ctx)
		defer cancel()
		return handle(ctx, request)
	}))
	service := &blockingService{called: make(chan struct{})}
	healthgrpc.RegisterHealthServer(server, service)
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	life.Serve(server, listener)
	client, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer client.Close()
	answer := make(chan error, 1)
	go func() {
		_, err := healthgrpc.NewHealthClient(client).Check(context.Background(), &healthgrpc.HealthCheckRequest{})
		answer <- err
	}()
	<-service.called
	began := time.Now()
	require.NoError(t, life.Shutdown(t.Context()))
	assert.GreaterOrEqual(t, time.Since(began), drain/2)
	assert.Equal(t, "stopping", status.Convert(<-answer).Message(), "the handler could answer")
}
