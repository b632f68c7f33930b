// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/hec"
	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pdatasize"
)

// hecServer receives events of Splunk's HTTP Event Collector.
type hecServer struct {
	httpServer
}

func newHECServer(cfg *HTTPConfig, d delivery) *hecServer {
	s := &hecServer{}
	s.httpServer = httpServer{
		delivery: d, key: "hec", ready: "ready for HEC events", cfg: cfg, mux: http.NewServeMux(), answerError: answerHECError,
	}
	for _, path := range []string{"/services/collector", "/services/collector/event", "/services/collector/event/1.0", "/v1/log"} {
		s.mux.HandleFunc(path, s.handleEvents)
	}
	for _, path := range []string{"/services/collector/health", "/services/collector/health/1.0"} {
		s.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			answerHEC(w, http.StatusOK, hec.Answer{Code: hec.Healthy})
		})
	}
	s.mux.HandleFunc("/services/collector/ack", func(w http.ResponseWriter, _ *http.Request) {
		answerHEC(w, http.StatusBadRequest, hec.Answer{
			Code: hec.AckDisabled, Reason: "an answer with code 0 already says that the pipeline took the events",
		})
	})
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answerHEC(w, http.StatusNotFound, hec.Answer{
			Text: "The requested URL was not found on this server.", Code: http.StatusNotFound,
			Reason: "send events to /services/collector/event",
		})
	})
	return s
}

func (s *hecServer) handleEvents(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answerHEC(w, http.StatusMethodNotAllowed, hec.Answer{
			Text: "The requested URL was not found on this server.", Code: http.StatusNotFound,
			Reason: fmt.Sprintf("method %s is not allowed here: use POST", r.Method),
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
	reader := hec.Reader{
		Library: library, Observed: pcommon.NewTimestampFromTime(time.Now()),
	}
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
