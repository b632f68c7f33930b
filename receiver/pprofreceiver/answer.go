// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
)

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
	code, retryAfter := statusOf(err)
	httpserver.SetRetryAfter(w, retryAfter)
	writeAnswer(w, code, answer{Error: err.Error(), Files: files})
}

// statusOf returns the status for an error, and how long to wait before a retry if one may help.
func statusOf(err error) (code int, retryAfter time.Duration) {
	var rejected *rejection
	var body *httpserver.BodyError
	switch {
	case isBusy(err):
		return httpserver.RetryStatus(err)
	case errors.As(err, &body):
		return body.Status, 0
	case errors.As(err, &rejected) && rejected.reason == reasonTooLarge:
		return http.StatusRequestEntityTooLarge, 0
	case rejected != nil:
		return http.StatusBadRequest, 0
	case httpserver.IsPermanent(err):
		return http.StatusUnprocessableEntity, 0
	}
	return httpserver.RetryStatus(err)
}

// isBusy reports that the receiver had no room or no time for a payload, which may be fine later.
func isBusy(err error) bool {
	why := reasonOf(err)
	return why == reasonBusy || why == reasonStopping
}

// isForGood reports that the same bytes would fail again: they are bad, or the pipeline says so.
func isForGood(err error) bool {
	return (reasonOf(err) != "" && !isBusy(err)) || httpserver.IsPermanent(err)
}
