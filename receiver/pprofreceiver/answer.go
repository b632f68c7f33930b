// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// defaultRetryAfter is what a sender is asked to wait where the pipeline does not say.
const defaultRetryAfter = 5 * time.Second

// answer is the JSON body of every answer but 204.
type answer struct {
	Error string       `json:"error"`
	Files []fileAnswer `json:"files,omitempty"`
}

// fileAnswer says what became of one file of a form; one without an error was taken.
type fileAnswer struct {
	File  string `json:"file"`
	Error string `json:"error,omitempty"`
	err   error
}

func writeAnswer(w http.ResponseWriter, status int, body answer) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// The sender is gone where this fails, and there is nobody else to tell.
	_ = json.NewEncoder(w).Encode(body)
}

// writeError answers with what went wrong: the sender's fault or the pipeline's.
func writeError(w http.ResponseWriter, err error, files []fileAnswer) {
	code, retryAfter := answerTo(err)
	if retryAfter > 0 {
		// RFC 9110 section 10.2.3 has whole seconds; a shorter wait becomes one second.
		seconds := int64((retryAfter + time.Second - 1) / time.Second)
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	writeAnswer(w, code, answer{Error: err.Error(), Files: files})
}

// answerTo gives the status for an error, and how long to wait before a retry where one may help.
func answerTo(err error) (code int, retryAfter time.Duration) {
	var rejected *rejection
	switch {
	case errors.As(err, &rejected) && rejected.reason == reasonTooLarge:
		return http.StatusRequestEntityTooLarge, 0
	case rejected != nil:
		return http.StatusBadRequest, 0
	case isPermanent(err):
		return http.StatusUnprocessableEntity, 0
	}
	retryAfter = defaultRetryAfter
	refused, known := status.FromError(err)
	if known {
		for _, detail := range refused.Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay().AsDuration() > 0 {
				retryAfter = info.GetRetryDelay().AsDuration()
			}
		}
	}
	if (known && refused.Code() == codes.ResourceExhausted) || consumererror.ToHTTPStatus(err) == http.StatusTooManyRequests {
		return http.StatusTooManyRequests, retryAfter
	}
	return http.StatusServiceUnavailable, retryAfter
}

// isForGood tells whether the same bytes would fail again: they are bad, or the pipeline says so.
func isForGood(err error) bool {
	var rejected *rejection
	return errors.As(err, &rejected) || isPermanent(err)
}

// isPermanent tells whether the pipeline would refuse the same data again.
func isPermanent(err error) bool {
	if consumererror.IsPermanent(err) {
		return true
	}
	var coded *consumererror.Error
	return errors.As(err, &coded) && !coded.IsRetryable()
}
