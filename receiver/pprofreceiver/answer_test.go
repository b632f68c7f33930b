// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/sourcetest"
)

func TestPushWhatThePipelineRefuses(t *testing.T) {
	throttled, err := status.New(codes.ResourceExhausted, "slow down").WithDetails(
		&errdetails.RetryInfo{RetryDelay: durationpb.New(1500 * time.Millisecond)})
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		err        error
		says       string
		code       int
		retryAfter string
	}{
		"for now":                 {errors.New("high memory usage"), "high memory usage", 503, "5"},
		"throttled, with a delay": {throttled.Err(), "slow down", 429, "2"},
		"for good, wrapped": {fmt.Errorf("export: %w",
			consumererror.NewPermanent(status.Error(codes.InvalidArgument, "no"))), "export: no", 422, ""},
		"for good over HTTP": {consumererror.NewOTLPHTTPError(errors.New("400"), 400), "400", 422, ""},
		"for now and for good too": {errors.Join(errors.New("busy"), consumererror.NewPermanent(errors.New("no"))),
			"busy\nno", 503, "5"},
	} {
		t.Run(name, func(t *testing.T) {
			f := startFixture(t, serverOnly)
			f.Next.RefuseWith(tc.err)
			code, header, a := send(t, f.pushURL(), sourcetest.Captured(t, "go-heap.pb.gz"))
			assert.Equal(t, tc.code, code)
			assert.Equal(t, tc.retryAfter, header.Get("Retry-After"))
			assert.Equal(t, tc.says, a.Error)
			assert.Positive(t, f.Sum("otelcol_receiver_refused_profile_samples", "transport", "http"))
			assert.Zero(t, f.Sum("otelcol_receiver_accepted_profile_samples"))

			f.Next.RefuseWith(nil)
			code, _, _ = send(t, f.pushURL(), sourcetest.Captured(t, "go-heap.pb.gz"))
			assert.Equal(t, http.StatusNoContent, code)
			assert.Equal(t, int64(f.Next.All()[0].SampleCount()),
				f.Sum("otelcol_receiver_accepted_profile_samples", "receiver", "pprof"))
		})
	}
}
