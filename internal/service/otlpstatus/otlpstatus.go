// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpstatus translates errors of the pipeline for senders: whether a retry may help (IsPermanent),
// after which delay (RetryDelay), why (Reason), and its status in gRPC (Of) and HTTP (ToHTTP).
package otlpstatus

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// DefaultRetryDelay is how long a sender is asked to wait if the pipeline names no delay.
const DefaultRetryDelay = 5 * time.Second

// IsPermanent reports whether the pipeline would refuse the same data again. If several components refused it, all must
// have done so permanently: otherwise a component that refused it for the moment would never get it.
func IsPermanent(err error) bool {
	var coded *consumererror.Error
	if !consumererror.IsPermanent(err) && (!errors.As(err, &coded) || coded.IsRetryable()) {
		return false
	}
	joined := Joined(err)
	return !slices.ContainsFunc(joined, IsPermanent) || // what joins them is permanent
		!slices.ContainsFunc(joined, func(one error) bool { return !IsPermanent(one) })
}

// Joined returns the errors that err joins, as those of several components of a pipeline. It is empty if err is a
// single one.
func Joined(err error) []error {
	for ; err != nil; err = errors.Unwrap(err) {
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			return joined.Unwrap()
		}
	}
	return nil
}

// RetryDelay returns the delay that a gRPC status within err asks for, or 0.
func RetryDelay(err error) time.Duration {
	refused, known := status.FromError(err)
	if !known {
		return 0
	}
	for _, detail := range refused.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return max(0, info.GetRetryDelay().AsDuration())
		}
	}
	return 0
}

// ForRetry returns the HTTP status for an error after which the sender should retry: 429 if the pipeline is throttled,
// otherwise 503, and the delay that Retry-After asks for.
func ForRetry(err error) (code int, delay time.Duration) {
	s := Of(err)
	return ToHTTP(s), RetryDelay(s.Err())
}

// wrapping matches what the Collector and gRPC put in front of errors on their way through a pipeline.
var wrapping = regexp.MustCompile(`(?:Permanent error|not retryable error|no more retries left|Throttle \([^)]*\), error): ` +
	`|rpc error: code = \S+ desc = `)

// Reason returns why the pipeline refused data, for senders: they know nothing of its wrappers.
func Reason(err error) string { return unwrapped(err.Error()) }

// unwrapped returns the text of an error in valid UTF-8: it may quote received data.
func unwrapped(text string) string { return dictionary.ValidUTF8(wrapping.ReplaceAllString(text, "")) }

// Of returns the gRPC status for an error of the pipeline, or for one that names its HTTP status (OTLP specification,
// Failures). If the sender should retry, the status carries a RetryInfo: without it, senders treat ResourceExhausted as
// permanent.
func Of(err error) *status.Status {
	s, known := status.FromError(err)
	answer := s.Proto() // a copy
	answer.Message = unwrapped(answer.GetMessage())
	s, message := status.FromProto(answer), answer.Message
	var fault interface{ HTTPStatus() int }
	switch {
	case errors.As(err, &fault) && fault.HTTPStatus() != http.StatusServiceUnavailable:
		return status.New(CodeOf(fault.HTTPStatus()), message)
	case IsPermanent(err):
		if !known || IsRetryable(s.Code()) {
			return status.New(codes.InvalidArgument, message)
		}
		return s
	case !known || !IsRetryable(s.Code()):
		code := codes.Unavailable
		if consumererror.ToHTTPStatus(err) == http.StatusTooManyRequests {
			code = codes.ResourceExhausted
		}
		s = status.New(code, message)
	}
	if RetryDelay(s.Err()) > 0 {
		return s
	}
	// it fails only for codes.OK
	s, _ = s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(DefaultRetryDelay)})
	return s
}

// IsRetryable reports whether OTLP's senders retry after a status (OTLP specification, Failures).
func IsRetryable(code codes.Code) bool {
	switch code {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss,
		codes.ResourceExhausted:
		return true
	default:
		return false
	}
}

// equivalents are gRPC codes and HTTP statuses with the same meaning. Of several statuses, the first is that of a code.
var equivalents = []struct {
	code   codes.Code
	status int
}{
	{codes.InvalidArgument, http.StatusBadRequest},
	{codes.Unauthenticated, http.StatusUnauthorized},
	{codes.PermissionDenied, http.StatusForbidden},
	{codes.Unimplemented, http.StatusNotFound},
	{codes.Unimplemented, http.StatusMethodNotAllowed},
	{codes.Unimplemented, http.StatusUnsupportedMediaType},
	{codes.ResourceExhausted, http.StatusTooManyRequests},
	{codes.Internal, http.StatusInternalServerError},
	{codes.Unavailable, http.StatusServiceUnavailable},
}

// ToHTTP returns the HTTP status for one that Of returned.
func ToHTTP(s *status.Status) int {
	for _, e := range equivalents {
		if e.code == s.Code() {
			return e.status
		}
	}
	if IsRetryable(s.Code()) {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// CodeOf returns the gRPC code for an HTTP status. Connect has the same codes.
func CodeOf(httpStatus int) codes.Code {
	for _, e := range equivalents {
		if e.status == httpStatus {
			return e.code
		}
	}
	return codes.InvalidArgument
}
