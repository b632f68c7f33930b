// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"mime"
	"net/http"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The content types of OTLP over HTTP.
const (
	ContentProtobuf = "application/x-protobuf"
	ContentJSON     = "application/json"
)

// ContentType returns a request's media type without parameters, or "" if it has none that can be read.
func ContentType(r *http.Request) string {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return mediaType
}

// OTLPStatus returns the gRPC status for an error of the pipeline (OTLP specification, Failures). One after which the
// sender should retry carries a RetryInfo; without that, senders take ResourceExhausted for permanent.
func OTLPStatus(err error) *status.Status {
	s, known := status.FromError(err)
	switch {
	case IsPermanent(err):
		if !known || IsRetryable(s.Code()) {
			return status.New(codes.InvalidArgument, err.Error())
		}
		return s
	case !known || !IsRetryable(s.Code()):
		code := codes.Unavailable
		if consumererror.ToHTTPStatus(err) == http.StatusTooManyRequests {
			code = codes.ResourceExhausted
		}
		s = status.New(code, err.Error())
	}
	if RetryDelay(s.Err()) > 0 {
		return s
	}
	with, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(DefaultRetryDelay)})
	if err != nil {
		return s
	}
	return with
}

// IsRetryable reports whether OTLP's senders retry after a status (OTLP specification, Failures).
func IsRetryable(code codes.Code) bool {
	switch code {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss, codes.ResourceExhausted:
		return true
	default:
		return false
	}
}

// HTTPStatus returns the HTTP status for one that OTLPStatus returned.
func HTTPStatus(s *status.Status) int {
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
	if IsRetryable(s.Code()) {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// codeOf returns the gRPC code that says the same as an HTTP status.
func codeOf(httpCode int) codes.Code {
	switch httpCode {
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound:
		return codes.Unimplemented
	case http.StatusInternalServerError:
		return codes.Internal
	case http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusServiceUnavailable, http.StatusRequestTimeout:
		return codes.Unavailable
	default:
		return codes.InvalidArgument
	}
}

// AnswerOTLPPipelineError answers for an error of the pipeline, with Retry-After where the sender should retry.
func AnswerOTLPPipelineError(w http.ResponseWriter, r *http.Request, err error) {
	AnswerOTLPStatus(w, r, OTLPStatus(err))
}

// AnswerOTLPStatus answers with a status that OTLPStatus returned.
func AnswerOTLPStatus(w http.ResponseWriter, r *http.Request, s *status.Status) {
	SetRetryAfter(w, RetryDelay(s.Err()))
	answerStatus(w, ContentType(r), s, HTTPStatus(s))
}

// AnswerOTLPError answers with a status message, as OTLP over HTTP asks for: in the request's encoding, or else JSON.
func AnswerOTLPError(w http.ResponseWriter, r *http.Request, message string, httpCode int) {
	answerStatus(w, ContentType(r), status.New(codeOf(httpCode), message), httpCode)
}

func answerStatus(w http.ResponseWriter, content string, s *status.Status, httpCode int) {
	if content == ContentProtobuf {
		if body, err := proto.Marshal(s.Proto()); err == nil {
			Answer(w, ContentProtobuf, body, httpCode)
			return
		}
	}
	body, err := protojson.Marshal(s.Proto())
	if err != nil {
		body = []byte("{}")
	}
	Answer(w, ContentJSON, body, httpCode)
}

// Answer writes a body. If that fails the sender is gone, and there is nobody else to tell.
func Answer(w http.ResponseWriter, content string, body []byte, httpCode int) {
	w.Header().Set("Content-Type", content)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(httpCode)
	_, _ = w.Write(body)
}
