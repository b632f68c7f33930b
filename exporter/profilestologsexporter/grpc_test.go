// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// A connection is tried again as often as requests are, and never all the time.
func TestConnectParams(t *testing.T) {
	const gRPCs = 2 * time.Minute
	for _, tc := range []struct {
		enabled          bool
		initial, longest time.Duration
		base, most       time.Duration
	}{
		{true, 5 * time.Second, 30 * time.Second, time.Second, 30 * time.Second},
		{true, 200 * time.Millisecond, time.Second, 200 * time.Millisecond, time.Second},
		{true, 0, 0, minConnectDelay, minConnectDelay},
		{true, time.Minute, time.Hour, time.Second, gRPCs},
		{false, time.Millisecond, time.Millisecond, time.Second, gRPCs},
	} {
		p := &grpcPeer{retry: configretry.BackOffConfig{
			Enabled: tc.enabled, InitialInterval: tc.initial, MaxInterval: tc.longest,
		}}
		got := p.connectParams()
		assert.Equal(t, tc.base, got.Backoff.BaseDelay)
		assert.Equal(t, tc.most, got.Backoff.MaxDelay)
		assert.Equal(t, 20*time.Second, got.MinConnectTimeout)
	}
}

func TestGRPCAnswers(t *testing.T) {
	delayed, err := status.New(codes.ResourceExhausted, "quota").
		WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(24 * time.Hour)})
	require.NoError(t, err)
	for _, tc := range []struct {
		err  error
		want outcome
		says string
	}{
		{status.Error(codes.Unimplemented, "unknown service"), noService, "unknown service"},
		{status.Error(codes.Internal, "grpc: error unmarshalling request: proto: wrong wireType = 2 for field Values"),
			unreadable, ""},
		{status.Error(codes.InvalidArgument, "profiles version is not known"), unreadable, ""},
		{status.Error(codes.InvalidArgument, "no tenant"), refused, ""},
		{status.Error(codes.Internal, "disk full"), refused, ""},
		{status.Error(codes.Unavailable, "unsupported"), later, ""},
		{status.Error(codes.PermissionDenied, "version"), refused, ""},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"), tooLarge, ""},
		{status.Error(codes.ResourceExhausted, "quota of tenant 12345678 is used up"), refused, ""},
		{status.Error(codes.OutOfRange, "Error, decoded message length too large: found 5 bytes"), tooLarge, ""},
		{delayed.Err(), later, "Throttle (1m0s)"},
	} {
		got := grpcAnswer(tc.err, time.Minute)
		assert.Equal(t, tc.want, got.outcome, tc.err)
		assert.Contains(t, got.err.Error(), tc.says)
		assert.Equal(t, tc.want != later, consumererror.IsPermanent(got.err))
	}
}
