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

func TestAnswerOTLPFailure(t *testing.T) {
	for name, tt := range map[string]struct {
		err       error
		http      int
		retryable bool
	}{
		"any error":           {errors.New("queue is full"), http.StatusServiceUnavailable, true},
		"throttled":           {status.Error(codes.ResourceExhausted, "x"), http.StatusTooManyRequests, true},
		"permanent":           {consumererror.NewPermanent(errors.New("x")), http.StatusBadRequest, false},
		"not UTF-8":           {consumererror.NewPermanent(errors.New("\xff")), http.StatusBadRequest, false},
		"not UTF-8, yet busy": {errors.New("\xff"), http.StatusServiceUnavailable, true},
		"a bad body": {&BodyError{Status: http.StatusRequestEntityTooLarge, Err: errors.New("x")},
			http.StatusRequestEntityTooLarge, false},
		"no room for a body": {&BodyError{Status: http.StatusServiceUnavailable, Err: errors.New("x")},
			http.StatusServiceUnavailable, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := proto.Marshal(otlpstatus.Of(tt.err).Proto()) // as gRPC does if there are details
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
