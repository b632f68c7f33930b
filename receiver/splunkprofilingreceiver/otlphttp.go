// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"fmt"
	"mime"
	"net/http"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pdatasize"
)

const (
	logsPath        = "/v1/logs"
	contentProtobuf = "application/x-protobuf"
	contentJSON     = "application/json"
)

// otlpServer receives OTLP logs over HTTP.
type otlpServer struct {
	httpServer
}

func newOTLPServer(cfg *HTTPConfig, d delivery) *otlpServer {
	s := &otlpServer{}
	s.httpServer = httpServer{
		delivery: d, key: "http", ready: "ready for OTLP logs over HTTP", cfg: cfg, mux: http.NewServeMux(),
		answerError: answerOTLPError,
	}
	s.mux.HandleFunc(logsPath, s.handleLogs)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answerOTLPError(w, r, "nothing is here: send logs to "+logsPath, http.StatusNotFound)
	})
	return s
}

func (s *otlpServer) handleLogs(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		answerOTLPError(w, r, "method "+r.Method+" is not allowed here: use POST", http.StatusMethodNotAllowed)
		return
	}
	content := contentType(r)
	if content != contentProtobuf && content != contentJSON {
		answerOTLPError(w, r, fmt.Sprintf("Content-Type %q is unknown here: use %s or %s",
			r.Header.Get("Content-Type"), contentProtobuf, contentJSON), http.StatusUnsupportedMediaType)
		return
	}
	claim := s.path.Budget.Begin()
	defer claim.Release()
	check := pdatasize.Logs
	if content == contentJSON {
		check = pdatasize.JSON
	}
	body, ok := s.readBody(w, r, claim, check)
	if !ok {
		return
	}
	request := plogotlp.NewExportRequest()
	var err error
	if content == contentJSON {
		err = request.UnmarshalJSON(body)
	} else {
		err = request.UnmarshalProto(body)
	}
	if err != nil {
		answerOTLPError(w, r, "the body is not an ExportLogsServiceRequest: "+err.Error(), http.StatusBadRequest)
		return
	}
	response, err := export(r.Context(), s.path, request, claim)
	if err != nil {
		failed := status.Convert(err)
		httpserver.SetRetryAfter(w, httpserver.RetryDelay(err))
		answerStatus(w, content, failed, httpStatus(failed))
		return
	}
	if content == contentJSON {
		body, err = response.MarshalJSON()
	} else {
		body, err = response.MarshalProto()
	}
	if err != nil {
		answerOTLPError(w, r, err.Error(), http.StatusInternalServerError)
		return
	}
	answerBody(w, content, body, http.StatusOK)
}

func contentType(r *http.Request) string {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return mediaType
}

// answerOTLPError answers with a status message, as OTLP/HTTP wants it, in the request's encoding or else JSON.
func answerOTLPError(w http.ResponseWriter, r *http.Request, message string, code int) {
	answerStatus(w, contentType(r), status.New(codeOf(code), message), code)
}

func codeOf(httpCode int) codes.Code {
	switch httpCode {
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound:
		return codes.Unimplemented
	case http.StatusInternalServerError:
		return codes.Internal
	case http.StatusServiceUnavailable:
		return codes.Unavailable
	default:
		return codes.InvalidArgument
	}
}

func answerStatus(w http.ResponseWriter, content string, s *status.Status, code int) {
	if content == contentProtobuf {
		if body, err := proto.Marshal(s.Proto()); err == nil {
			answerBody(w, contentProtobuf, body, code)
			return
		}
	}
	body, err := protojson.Marshal(s.Proto())
	if err != nil {
		body = []byte("{}")
	}
	answerBody(w, contentJSON, body, code)
}

func answerBody(w http.ResponseWriter, content string, body []byte, code int) {
	w.Header().Set("Content-Type", content)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	// The sender is gone where this fails, and there is nobody else to tell.
	_, _ = w.Write(body)
}
