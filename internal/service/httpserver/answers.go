// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
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

// SetRetryAfter asks the sender to wait: whole seconds (RFC 9110 section 10.2.3), at least one. 0 sets nothing.
func SetRetryAfter(w http.ResponseWriter, delay time.Duration) {
	if delay > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((delay-1)/time.Second)+1, 10))
	}
}

// RetryAfter returns the delay that an answer asks for: seconds, or the time until a date (RFC 9110 section 10.2.3). It
// is 0 without a valid header, and negative if the date has passed.
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

// AnswerOTLPFailure answers with the status of an error of the pipeline, or of the body, and with Retry-After if the
// sender should retry.
func AnswerOTLPFailure(w http.ResponseWriter, r *http.Request, err error) {
	s := otlpstatus.Of(err)
	code := otlpstatus.ToHTTP(s)
	if fault, ok := errors.AsType[*BodyError](err); ok {
		code = fault.Status
	}
	SetRetryAfter(w, otlpstatus.RetryDelay(s.Err()))
	answerStatus(w, ContentType(r), s, code)
}

// AnswerOTLPError answers with a status message, as OTLP over HTTP requires: in the request's encoding, or else in
// JSON.
func AnswerOTLPError(w http.ResponseWriter, r *http.Request, message string, httpCode int) {
	answerStatus(w, ContentType(r), status.New(otlpstatus.CodeOf(httpCode), message), httpCode)
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
