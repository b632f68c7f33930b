// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
)

// Reasons lists why something was dropped, with the number of times: counts has one for each value of R.
func Reasons[R interface {
	~int
	String() string
}](counts []int) string {
	var reasons []string
	for reason, n := range counts {
		if n > 0 {
			reasons = append(reasons, fmt.Sprintf("%v: %d", R(reason), n))
		}
	}
	return strings.Join(reasons, ", ")
}

// DefaultRetryDelay is how long a sender is asked to wait if the pipeline names no delay.
const DefaultRetryDelay = 5 * time.Second

// IsPermanent reports whether the pipeline would refuse the same data again. If several components refused it, all must have done so
// permanently: otherwise a component that refused it for the moment would never get it.
func IsPermanent(err error) bool {
	var coded *consumererror.Error
	if !consumererror.IsPermanent(err) && (!errors.As(err, &coded) || coded.IsRetryable()) {
		return false
	}
	joined := Joined(err)
	return !slices.ContainsFunc(joined, IsPermanent) || // what joins them is permanent
		!slices.ContainsFunc(joined, func(one error) bool { return !IsPermanent(one) })
}

// Joined returns the errors that err joins, as those of several components of a pipeline. It is empty if err is a single one.
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

// RetryStatus returns the answer to an error after which the sender should retry: 429 if the pipeline is throttled,
// otherwise 503, and the delay for SetRetryAfter.
func RetryStatus(err error) (code int, delay time.Duration) {
	s := OTLPStatus(err)
	return HTTPStatus(s), RetryDelay(s.Err())
}

// SetRetryAfter asks the sender to wait: whole seconds (RFC 9110 section 10.2.3), at least one. 0 sets nothing.
func SetRetryAfter(w http.ResponseWriter, delay time.Duration) {
	if delay > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((delay-1)/time.Second)+1, 10))
	}
}

// RetryAfter returns the delay that an answer asks for: seconds, or the time until a date (RFC 9110 section 10.2.3). It is 0 without
// a valid header, and negative if the date has passed.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(max(seconds, 0), math.MaxInt64/int64(time.Second))) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return date.Sub(now)
	}
	return 0
}

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

// OTLPStatus returns the gRPC status for an error of the pipeline, or of a body (OTLP specification, Failures). If the sender should
// retry, the status carries a RetryInfo: without it, senders treat ResourceExhausted as permanent.
func OTLPStatus(err error) *status.Status {
	s, known := status.FromError(err)
	message := dictionary.ValidUTF8(err.Error()) // it may quote what was sent
	var fault *BodyError
	switch {
	case errors.As(err, &fault) && fault.Status != http.StatusServiceUnavailable:
		return status.New(CodeOf(fault.Status), message)
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
	s, _ = s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(DefaultRetryDelay)}) // it fails only for codes.OK
	return s
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
	{codes.Unavailable, http.StatusRequestTimeout},
}

// HTTPStatus returns the HTTP status for one that OTLPStatus returned.
func HTTPStatus(s *status.Status) int {
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

// AnswerOTLPFailure answers with the status of an error of the pipeline, or of the body, and with Retry-After if the sender should retry.
func AnswerOTLPFailure(w http.ResponseWriter, r *http.Request, err error) {
	s := OTLPStatus(err)
	code := HTTPStatus(s)
	var fault *BodyError
	if errors.As(err, &fault) {
		code = fault.Status
	}
	SetRetryAfter(w, RetryDelay(s.Err()))
	answerStatus(w, ContentType(r), s, code)
}

// AnswerOTLPError answers with a status message, as OTLP over HTTP requires: in the request's encoding, or else in JSON.
func AnswerOTLPError(w http.ResponseWriter, r *http.Request, message string, httpCode int) {
	answerStatus(w, ContentType(r), status.New(CodeOf(httpCode), message), httpCode)
}

func answerStatus(w http.ResponseWriter, content string, s *status.Status, httpCode int) {
	answer := s.Proto() // a copy
	answer.Message = dictionary.ValidUTF8(answer.GetMessage())
	marshal := protojson.Marshal
	if content == ContentProtobuf {
		marshal = proto.Marshal
	} else {
		content = ContentJSON
	}
	body, err := marshal(answer)
	if err != nil {
		body = []byte("{}") // a detail of an unknown type has no JSON
	}
	Answer(w, content, body, httpCode)
}

// Answer writes a body. An error means that the sender is gone.
func Answer(w http.ResponseWriter, content string, body []byte, httpCode int) {
	w.Header().Set("Content-Type", content)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(httpCode)
	_, _ = w.Write(body)
}
