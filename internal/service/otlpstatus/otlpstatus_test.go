// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpstatus

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// An error after which the sender should retry has a delay. A permanent one is never a status after which senders
// retry.
func TestStatus(t *testing.T) {
	full, later := errors.New("full"), DefaultRetryDelay
	permanent, byHTTP := consumererror.NewPermanent, consumererror.NewOTLPHTTPError
	const soon = 1500 * time.Millisecond
	withDelay, err := status.New(codes.ResourceExhausted, "slow down").
		WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(soon)})
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		err   error
		grpc  codes.Code
		http  int
		delay time.Duration // 0 if the error is permanent
	}{
		"any":                 {full, codes.Unavailable, 503, later},
		"late":                {context.DeadlineExceeded, codes.Unavailable, 503, later},
		"throttled":           {fmt.Errorf("next: %w", withDelay.Err()), codes.ResourceExhausted, 429, soon},
		"throttled, no delay": {status.Error(codes.ResourceExhausted, "full"), codes.ResourceExhausted, 429, later},
		"throttled by HTTP":   {byHTTP(full, 429), codes.ResourceExhausted, 429, later},
		"refused by HTTP":     {byHTTP(full, 400), codes.InvalidArgument, 400, 0},
		"busy by HTTP":        {byHTTP(full, 503), codes.Unavailable, 503, later},
		"unavailable":         {status.Error(codes.Unavailable, "away"), codes.Unavailable, 503, later},
		"unknown":             {status.Error(codes.Unknown, "x"), codes.Unavailable, 503, later},
		"permanent":           {fmt.Errorf("x: %w", permanent(full)), codes.InvalidArgument, 400, 0},
		"permanent, busy":     {permanent(withDelay.Err()), codes.InvalidArgument, 400, 0},
		"permanent, denied":   {permanent(status.Error(codes.PermissionDenied, "x")), codes.PermissionDenied, 403, 0},
		"permanent, broken":   {permanent(status.Error(codes.Internal, "x")), codes.Internal, 500, 0},
		"permanent by all":    {errors.Join(permanent(full), permanent(full)), codes.InvalidArgument, 400, 0},
		"permanent as such":   {permanent(errors.Join(full, full)), codes.InvalidArgument, 400, 0},
		"permanent by one":    {fmt.Errorf("both: %w", errors.Join(full, permanent(full))), codes.Unavailable, 503, later},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.delay == 0, IsPermanent(tt.err))
			assert.Equal(t, tt.grpc, Of(tt.err).Code())
			code, delay := ForRetry(tt.err)
			assert.Equal(t, tt.http, code)
			assert.Equal(t, tt.delay, delay)
		})
	}
	assert.False(t, IsPermanent(nil))
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
