// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"net/http"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
)

// statusOf returns the status for an error of the pipeline (OTLP specification, Failures). One that may pass carries a
// RetryInfo, without which senders take ResourceExhausted for permanent.
func statusOf(err error) *status.Status {
	s, known := status.FromError(err)
	switch {
	case httpserver.IsPermanent(err):
		if !known || retryable(s.Code()) {
			return status.New(codes.InvalidArgument, err.Error())
		}
		return s
	case !known || !retryable(s.Code()):
		code := codes.Unavailable
		if consumererror.ToHTTPStatus(err) == http.StatusTooManyRequests {
			code = codes.ResourceExhausted
		}
		s = status.New(code, err.Error())
	}
	if httpserver.RetryDelay(s.Err()) > 0 {
		return s
	}
	with, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(httpserver.DefaultRetryDelay)})
	if err != nil {
		return s
	}
	return with
}

func retryable(code codes.Code) bool {
	switch code {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss, codes.ResourceExhausted:
		return true
	default:
		return false
	}
}

// httpStatus returns the HTTP status for a status that statusOf made.
func httpStatus(s *status.Status) int {
	switch s.Code() {
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.Unimplemented:
		return http.StatusNotFound
	}
	if retryable(s.Code()) {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
