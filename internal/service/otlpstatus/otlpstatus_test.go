// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstatus

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestIsPermanent(t *testing.T) {
	assert.False(t, IsPermanent(nil))
	assert.False(t, IsPermanent(errors.New("x")))
	assert.True(t, IsPermanent(fmt.Errorf("x: %w", consumererror.NewPermanent(errors.New("y")))))
	assert.True(t, IsPermanent(consumererror.NewOTLPHTTPError(errors.New("x"), 400)))
	assert.False(t, IsPermanent(consumererror.NewOTLPHTTPError(errors.New("x"), 503)))
}

// Senders learn why data was refused, and with which status, but nothing of what wraps the reason.
func TestReason(t *testing.T) {
	no, refused := errors.New("no"), status.Error(codes.PermissionDenied, "no")
	permanent := consumererror.NewPermanent
	for _, tt := range []struct {
		err  error
		code codes.Code
	}{
		{no, codes.Unavailable},
		{permanent(permanent(no)), codes.InvalidArgument},
		{refused, codes.Unavailable},
		{permanent(refused), codes.PermissionDenied},
		{fmt.Errorf("not retryable error: %w", permanent(refused)), codes.PermissionDenied},
		{fmt.Errorf("no more retries left: %w", status.Error(codes.ResourceExhausted, "no")), codes.ResourceExhausted},
		{exporterhelper.NewThrottleRetry(status.Error(codes.Unavailable, "no"), time.Minute), codes.Unavailable},
	} {
		assert.Equal(t, "no", Reason(tt.err))
		assert.Equal(t, "no", Of(tt.err).Message(), "%v", tt.err)
		assert.Equal(t, tt.code, Of(tt.err).Code(), "%v", tt.err)
	}
	assert.Equal(t, "pod: no\ncart: no", Reason(errors.Join(fmt.Errorf("pod: %w", permanent(no)), fmt.Errorf("cart: %w", no))))
}
