// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/hec"
	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pdatasize"
)

// startHEC starts the server for events of Splunk's HTTP Event Collector.
func (c *HTTPConfig) startHEC(ctx context.Context, host component.Host, d delivery) (server, error) {
	s := &httpServer{delivery: d, cfg: c, answerError: answerHECError}
	mux := http.NewServeMux()
	for _, path := range []string{"/services/collector", "/services/collector/event", "/services/collector/event/1.0", "/v1/log"} {
		mux.HandleFunc(path, s.handleEvents)
	}
	answer := func(path string, status int, answer hec.Answer) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { answerHEC(w, status, answer) })
	}
	answer("/services/collector/health", http.StatusOK, hec.Answer{Code: hec.Healthy})
	answer("/services/collector/health/1.0", http.StatusOK, hec.Answer{Code: hec.Healthy})
	answer("/services/collector/ack", http.StatusBadRequest, hec.Answer{
		Code: hec.AckDisabled, Reason: "an answer with code 0 already means that the pipeline accepted the events",
	})
	answer("/", http.StatusNotFound, hec.Answer{Text: notFound, Code: http.StatusNotFound, Reason: "send events to /services/collector/event"})
	return s.start(ctx, host, "HEC events", mux)
}

const notFound = "The requested URL was not found on this server."

func (s *httpServer) handleEvents(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answerHEC(w, http.StatusMethodNotAllowed, hec.Answer{
			Text: notFound, Code: http.StatusNotFound, Reason: fmt.Sprintf("method %s is not allowed here: use POST", r.Method),
		})
		return
	}
	claim := s.path.Budget.Begin()
	defer claim.Release()
	body, ok := s.readBody(w, r, claim, pdatasize.JSON)
	if !ok {
		return
	}
	library := strings.TrimSpace(r.Header.Get(hec.LibraryHeader))
	if len(library) > hec.MaxLibraryBytes {
		answerHEC(w, http.StatusBadRequest, hec.Answer{
			Code: hec.InvalidData, Reason: fmt.Sprintf("%s is longer than %d bytes", hec.LibraryHeader, hec.MaxLibraryBytes),
		})
		return
	}
	reader := hec.Reader{Library: library, Observed: pcommon.NewTimestampFromTime(time.Now())}
	ld, fault := reader.Read(body)
	if fault != nil {
		answerHEC(w, fault.Status, fault.Answer)
		return
	}
	report, err := s.path.Deliver(r.Context(), ld, claim)
	switch {
	case err != nil && httpserver.IsPermanent(err):
		answerHEC(w, http.StatusBadRequest, hec.Answer{Code: hec.InvalidData, Reason: err.Error()})
	case err != nil:
		_, delay := httpserver.RetryStatus(err)
		httpserver.SetRetryAfter(w, delay)
		answerHEC(w, http.StatusServiceUnavailable, hec.Answer{Code: hec.Busy, Reason: err.Error()})
	case report.Rejected > 0:
		answerHEC(w, http.StatusBadRequest, hec.Answer{
			Code: hec.InvalidData, InvalidEvent: &report.First, Rejected: report.Rejected, Reason: report.Message,
		})
	default:
		answerHEC(w, http.StatusOK, hec.Answer{Code: hec.Success})
	}
}

func answerHEC(w http.ResponseWriter, status int, answer hec.Answer) {
	if answer.Text == "" {
		answer.Text = hec.Texts[answer.Code]
	}
	body, err := json.Marshal(answer)
	if err != nil {
		body = []byte("{}")
	}
	httpserver.Answer(w, httpserver.ContentJSON, body, status)
}

// answerHECError answers for confighttp, and for bodies that cannot be read.
func answerHECError(w http.ResponseWriter, r *http.Request, message string, status int) {
	answer := hec.Answer{Code: hec.InvalidData, Reason: message}
	switch status {
	case http.StatusUnauthorized:
		// HEC has three codes for this. The authenticator's message is left out, since it could reveal too much.
		answer.Reason = ""
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		switch {
		case scheme == "":
			answer.Code = hec.TokenRequired
		case !strings.EqualFold(scheme, "Splunk") || token == "":
			answer.Code = hec.InvalidAuthorization
		default:
			answer.Code, status = hec.InvalidToken, http.StatusForbidden
		}
	case http.StatusRequestEntityTooLarge:
		answer.Code = hec.TooLarge
	case http.StatusInternalServerError:
		answer.Code = hec.InternalError
	case http.StatusServiceUnavailable:
		answer.Code = hec.Busy
	}
	answerHEC(w, status, answer)
}
