// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/exportreport"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpclient"
)

// outcome is the result of a request.
type outcome int

const (
	// accepted: the peer has the data, except for the items that it rejected.
	accepted outcome = iota
	// later: the same request may be accepted later.
	later
	// refused: the same request is refused again.
	refused
	// tooLarge: the request is above a limit, the peer's or our own.
	tooLarge
	// noService: the peer has no service for this kind of data.
	noService
	// unreadable: the peer names a version, or cannot unmarshal the message. Either the peer knows another layout of
	// profiles, or this message is malformed.
	unreadable
)

// answer is a peer's answer to a request.
type answer struct {
	outcome outcome
	// err is the reason for which the request was not accepted. It is permanent unless the outcome is later, or the
	// request was not sent.
	err error
	// size is the size of the request in bytes, before compression.
	size int
	// leftOut is the number of attributes that the request had no room for.
	leftOut int
	// rejected counts the rejected items of an accepted request; message is its reason.
	rejected int64
	message  string
}

var errAboveLimit = errors.New("the request is above max_request_bytes")

// grpcAnswer interprets an error of a gRPC client (OTLP specification, OTLP/gRPC failures and throttling).
func grpcAnswer(err error, maxDelay time.Duration) answer {
	s := status.Convert(err)
	var retry *errdetails.RetryInfo
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			retry = info
		}
	}
	if len(s.Message()) > httpclient.MaxMessageBytes {
		err = status.Error(s.Code(), httpclient.Shorten(s.Message()))
	}
	message := strings.ToLower(httpclient.Shorten(s.Message()))
	a := answer{outcome: refused}
	switch s.Code() {
	case codes.Unimplemented:
		a.outcome = noService
	case codes.InvalidArgument, codes.FailedPrecondition, codes.Internal:
		if namesLayout(message) {
			a.outcome = unreadable
		}
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.Unavailable, codes.DataLoss:
		a.outcome = later
	case codes.OutOfRange:
		a.outcome = later
		if namesSize(message) { // Rust's library returns it for a message that is too large
			a.outcome = tooLarge
		}
	case codes.ResourceExhausted:
		if retry != nil { // a peer that names a delay recovers
			a.outcome = later
		} else if namesSize(message) {
			a.outcome = tooLarge
		}
	}
	a.err = explain(a.outcome, err, min(retry.GetRetryDelay().AsDuration(), maxDelay))
	return a
}

// httpAnswer interprets a refusal by HTTP (OTLP specification, OTLP/HTTP failures and throttling).
func httpAnswer(refusal *httpclient.Answer) answer {
	message := strings.ToLower(refusal.Message)
	a := answer{outcome: refused}
	switch refusal.Status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		a.outcome = noService
	case http.StatusRequestEntityTooLarge:
		a.outcome = tooLarge
	case http.StatusBadRequest:
		if namesSize(message) { // Go's servers notice it while they read
			a.outcome = tooLarge
		} else if namesLayout(message) {
			a.outcome = unreadable
		}
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		a.outcome = later
	}
	a.err = explain(a.outcome, refusal, refusal.RetryAfter)
	return a
}

// explain returns the error that tells exporterhelper whether and when to retry.
func explain(o outcome, err error, delay time.Duration) error {
	if o == later {
		return exportreport.Retry(err, delay)
	}
	return consumererror.NewPermanent(err)
}

// namesLayout reports whether a message, in lower case, is about the layout of profiles: a peer with an older one
// cannot unmarshal them, or names the version. Such answers have no code of their own.
func namesLayout(message string) bool {
	return containsAny(message, "version", "unmarshal", "wiretype", "wire type", "not supported", "unsupported")
}

// namesSize reports whether a message, in lower case, means that a request is too large. The words are those of the
// gRPC libraries for Go, C++, Java, .NET, JavaScript and Rust, and of net/http.
func namesSize(message string) bool {
	return containsAny(message, "larger than", "too large", "exceeds maximum size", "exceeds the maximum")
}

func containsAny(message string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(message, word) })
}
