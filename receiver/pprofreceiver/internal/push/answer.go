// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package push

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/scan"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// pushedFile is one file of a form, and what became of it. It has no error if the pipeline accepted it.
type pushedFile struct {
	Name  string `json:"file"`
	Error string `json:"error,omitempty"`

	err      error
	profiles pprofile.Profiles
}

type formError struct {
	error
	files []pushedFile
}

func (e *formError) Unwrap() error { return e.error }

type errorWriter func(w http.ResponseWriter, r *http.Request, status int, err error)

// writeError answers in JSON, as every route does that has no form of its own for errors.
func writeError(w http.ResponseWriter, _ *http.Request, status int, err error) {
	a := answer{Error: otlpstatus.Reason(err)}
	var form *formError
	if errors.As(err, &form) {
		a.Files = form.files
	}
	writeAnswer(w, status, a)
}

// answer is the body of an answer. Warning is what became of a push that was accepted without some of its samples.
type answer struct {
	Error   string       `json:"error,omitempty"`
	Warning string       `json:"warning,omitempty"`
	Files   []pushedFile `json:"files,omitempty"`
}

func writeAnswer(w http.ResponseWriter, status int, a answer) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false) // people read it at a terminal: attr.<key>, not attr.\u003ckey\u003e
	_ = enc.Encode(a)        // strings always encode
	httpserver.Answer(w, httpserver.ContentJSON, body.Bytes(), status)
}

// fail answers for an error, which may be the sender's fault or the pipeline's. It counts the rejections: each bad
// file of a form, or else the request.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, write errorWriter, err error) {
	var form *formError
	if !errors.As(err, &form) {
		form = &formError{files: []pushedFile{{err: err}}}
	}
	for _, file := range form.files {
		s.ingest.CountRejected(r.Context(), file.err)
	}
	status, retryAfter := statusOf(err)
	httpserver.SetRetryAfter(w, retryAfter)
	write(w, r, status, err)
}

// statusOf returns the status for an error, and how long to wait before a retry if one may help.
func statusOf(err error) (status int, retryAfter time.Duration) {
	var body *httpserver.BodyError
	var format *scan.FormatError
	why := ingest.ReasonOf(err)
	switch {
	case ingest.IsBusy(err), errors.Is(err, httpserver.ErrLate):
	case errors.As(err, &body):
		return body.Status, 0
	case errors.Is(err, errFormat), errors.As(err, &format) && format.IsOther:
		return http.StatusUnsupportedMediaType, 0
	case why == ingest.TooLarge:
		return http.StatusRequestEntityTooLarge, 0
	case why != "":
		return http.StatusBadRequest, 0
	case otlpstatus.IsPermanent(err):
		return http.StatusUnprocessableEntity, 0
	}
	return otlpstatus.ForRetry(err)
}
