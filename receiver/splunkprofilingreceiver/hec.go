// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/delivery"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/hec"
)

// hecServer receives events of Splunk's HTTP Event Collector.
type hecServer struct {
	path *delivery.Path
	http httpserver.HTTP
}

func (s *hecServer) start(ctx context.Context, env httpserver.Env) (otlpserver.Server, error) {
	mux := http.NewServeMux()
	for _, path := range []string{"/services/collector", "/services/collector/event", "/services/collector/event/1.0",
		"/v1/log"} {
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
	answer("/", http.StatusNotFound, hec.Answer{Text: notFound, Code: http.StatusNotFound, Reason: elsewhere})
	running, err := s.http.Start(ctx, mux, env)
	if err != nil {
		return nil, err
	}
	env.Telemetry.Logger.Info("ready for HEC events", zap.Stringer("endpoint", running.Addr()))
	return running, nil
}

const elsewhere = "send events to /services/collector/event or /v1/log; OTLP logs go to the endpoints of `grpc` and `http`, by default 4317 and 4318"

const notFound = "The requested URL was not found on this server."

func (s *hecServer) handleEvents(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answerHEC(w, http.StatusMethodNotAllowed, hec.Answer{
			Text: notFound, Code: http.StatusNotFound, Reason: fmt.Sprintf("method %s is not allowed here: use POST", r.Method),
		})
		return
	}
	reservation := s.path.Budget.Begin()
	defer reservation.Release()
	body, err := s.http.ReadBody(w, r, reservation)
	if err == nil {
		err = otlpserver.Admit(r.Context(), reservation, body, hec.MemoryOf)
	}
	if err != nil {
		code := http.StatusServiceUnavailable
		if fault, ok := errors.AsType[*httpserver.BodyError](err); ok {
			code = fault.Status
		}
		answerHECError(w, r, "read the body: "+err.Error(), code)
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
	report, err := s.path.Deliver(r.Context(), ld, reservation)
	switch {
	case err != nil && otlpstatus.IsPermanent(err):
		answerHEC(w, http.StatusBadRequest, hec.Answer{Code: hec.InvalidData, Reason: otlpstatus.Reason(err)})
	case err != nil:
		_, delay := otlpstatus.ForRetry(err)
		httpserver.SetRetryAfter(w, delay)
		answerHEC(w, http.StatusServiceUnavailable, hec.Answer{Code: hec.Busy, Reason: otlpstatus.Reason(err)})
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
	body, _ := json.Marshal(answer) // strings and numbers cannot fail
	httpserver.Answer(w, httpserver.ContentJSON, body, status)
}

// answerHECError answers for confighttp, and for bodies that cannot be read or do not fit into the budget.
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
		httpserver.SetRetryAfter(w, otlpstatus.DefaultRetryDelay)
	}
	answerHEC(w, status, answer)
}
