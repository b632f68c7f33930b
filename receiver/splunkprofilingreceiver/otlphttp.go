// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"fmt"
	"net/http"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pdatasize"
)

const logsPath = "/v1/logs"

// otlpServer receives OTLP logs over HTTP.
type otlpServer struct {
	httpServer
}

func newOTLPServer(cfg *HTTPConfig, d delivery) *otlpServer {
	s := &otlpServer{}
	s.httpServer = httpServer{
		delivery: d, key: "http", ready: "ready for OTLP logs over HTTP", cfg: cfg, mux: http.NewServeMux(),
		answerError: httpserver.AnswerOTLPError,
	}
	s.mux.HandleFunc(logsPath, s.handleLogs)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		httpserver.AnswerOTLPError(w, r, "nothing is here: send logs to "+logsPath, http.StatusNotFound)
	})
	return s
}

func (s *otlpServer) handleLogs(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		httpserver.AnswerOTLPError(w, r, "method "+r.Method+" is not allowed here: use POST", http.StatusMethodNotAllowed)
		return
	}
	content := httpserver.ContentType(r)
	if content != httpserver.ContentProtobuf && content != httpserver.ContentJSON {
		httpserver.AnswerOTLPError(w, r, fmt.Sprintf("Content-Type %q is unknown here: use %s or %s",
			r.Header.Get("Content-Type"), httpserver.ContentProtobuf, httpserver.ContentJSON), http.StatusUnsupportedMediaType)
		return
	}
	claim := s.path.Budget.Begin()
	defer claim.Release()
	check := pdatasize.Logs
	if content == httpserver.ContentJSON {
		check = pdatasize.JSON
	}
	body, ok := s.readBody(w, r, claim, check)
	if !ok {
		return
	}
	request := plogotlp.NewExportRequest()
	var err error
	if content == httpserver.ContentJSON {
		err = request.UnmarshalJSON(body)
	} else {
		err = request.UnmarshalProto(body)
	}
	if err != nil {
		httpserver.AnswerOTLPError(w, r, "the body is not an ExportLogsServiceRequest: "+err.Error(), http.StatusBadRequest)
		return
	}
	response, err := export(r.Context(), s.path, request, claim)
	if err != nil {
		httpserver.AnswerOTLPStatus(w, r, status.Convert(err))
		return
	}
	if content == httpserver.ContentJSON {
		body, err = response.MarshalJSON()
	} else {
		body, err = response.MarshalProto()
	}
	if err != nil {
		httpserver.AnswerOTLPError(w, r, err.Error(), http.StatusInternalServerError)
		return
	}
	httpserver.Answer(w, content, body, http.StatusOK)
}
