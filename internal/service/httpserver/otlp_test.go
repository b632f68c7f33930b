// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
)

// An error after which the sender should retry has a delay; a permanent error is never a status after which senders
// retry.
func TestOTLPStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		err       error
		want      codes.Code
		http      int
		retryable bool
	}{
		"any error": {errors.New("queue is full"), codes.Unavailable, http.StatusServiceUnavailable, true},
		"throttled": {consumererror.NewOTLPHTTPError(errors.New("x"), 429), codes.ResourceExhausted,
			http.StatusTooManyRequests, true},
		"unknown": {status.Error(codes.Unknown, "x"), codes.Unavailable, http.StatusServiceUnavailable, true},
		"permanent": {consumererror.NewPermanent(errors.New("x")), codes.InvalidArgument, http.StatusBadRequest,
			false},
		"not UTF-8": {consumererror.NewPermanent(errors.New("\xff")), codes.InvalidArgument, http.StatusBadRequest,
			false},
		"not UTF-8, yet busy": {errors.New("\xff"), codes.Unavailable, http.StatusServiceUnavailable, true},
		"permanent, yet busy": {consumererror.NewPermanent(status.Error(codes.Unavailable, "x")), codes.InvalidArgument,
			http.StatusBadRequest, false},
		"a bad body": {&BodyError{Status: http.StatusRequestEntityTooLarge, Err: errors.New("x")},
			codes.InvalidArgument, http.StatusRequestEntityTooLarge, false},
		"no room for a body": {&BodyError{Status: http.StatusServiceUnavailable, Err: errors.New("x")}, codes.Unavailable,
			http.StatusServiceUnavailable, true},
		"permanent, denied": {consumererror.NewPermanent(status.Error(codes.PermissionDenied, "x")), codes.PermissionDenied,
			http.StatusForbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := otlpstatus.Of(tt.err)
			assert.Equal(t, tt.want, s.Code())
			assert.Equal(t, tt.retryable, otlpstatus.RetryDelay(s.Err()) > 0)
			_, err := proto.Marshal(s.Proto()) // as gRPC does if there are details
			assert.NoError(t, err)
			for content, body := range map[string]string{ContentProtobuf: "\x08", ContentJSON: `"code":`} {
				w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil)
				r.Header.Set("Content-Type", content)
				AnswerOTLPFailure(w, r, tt.err)
				assert.Equal(t, tt.http, w.Code)
				assert.Equal(t, content, w.Header().Get("Content-Type"))
				assert.Contains(t, w.Body.String(), body)
				assert.Equal(t, tt.retryable, w.Header().Get("Retry-After") != "")
			}
		})
	}
}
