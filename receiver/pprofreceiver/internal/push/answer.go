// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
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

// writeError answers with an error alone.
func writeError(w http.ResponseWriter, status int, err error) {
	writeAnswer(w, status, answer{Error: err.Error()})
}

// fail answers with what went wrong, by the sender's fault or the pipeline's, and counts what was rejected: each bad file
// of a form, or the request.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error, files []fileAnswer) {
	counted := false
	for _, file := range files {
		s.ingest.CountRejected(r.Context(), file.err)
		counted = counted || file.err != nil
	}
	if !counted {
		s.ingest.CountRejected(r.Context(), err)
	}
	code, retryAfter := statusOf(err)
	httpserver.SetRetryAfter(w, retryAfter)
	writeAnswer(w, code, answer{Error: err.Error(), Files: files})
}

// statusOf returns the status for an error, and how long to wait before a retry if one may help.
func statusOf(err error) (code int, retryAfter time.Duration) {
	var rejected *ingest.Rejection
	var body *httpserver.BodyError
	switch {
	case ingest.IsBusy(err):
		return httpserver.RetryStatus(err)
	case errors.As(err, &body):
		return body.Status, 0
	case errors.As(err, &rejected) && rejected.Reason == ingest.TooLarge:
		return http.StatusRequestEntityTooLarge, 0
	case rejected != nil:
		return http.StatusBadRequest, 0
	case httpserver.IsPermanent(err):
		return http.StatusUnprocessableEntity, 0
	}
	return httpserver.RetryStatus(err)
}
