// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.uber.org/zap"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pdatasize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
)

// httpServer serves one protocol over HTTP.
type httpServer struct {
	delivery
	cfg *HTTPConfig
	// answerError answers for confighttp, for example if a sender may not send, and for bodies that cannot be read.
	answerError func(w http.ResponseWriter, r *http.Request, message string, code int)
}

// start binds the endpoint and begins to serve.
func (s *httpServer) start(ctx context.Context, host component.Host, protocol string, handler http.Handler) (server, error) {
	options := []confighttp.ToServerOption{confighttp.WithErrorHandler(s.answerTransportError)}
	for _, encoding := range append([]string{"", "identity"}, httpserver.Encodings...) {
		// httpserver.OpenBody decodes bodies, within limits.
		options = append(options, confighttp.WithDecoder(encoding, func(io.ReadCloser) (io.ReadCloser, error) { return nil, nil }))
	}
	h, err := s.cfg.Server.ToServer(ctx, host.GetExtensions(), s.set, handler, options...)
	if err != nil {
		return server{}, err
	}
	listener, err := s.cfg.Server.ToListener(ctx)
	if err != nil {
		return server{}, err
	}
	s.set.Logger.Info("ready for "+protocol, zap.Stringer("endpoint", listener.Addr()))
	s.options.Browsers = httpserver.OfOrigins(s.cfg.Server.CORS, func(w http.ResponseWriter, r *http.Request, err error) {
		s.answerError(w, r, err.Error(), http.StatusForbidden)
	})
	return server{address: listener.Addr(), shutdown: httpserver.Start(h, listener, s.options).Shutdown}, nil
}

// encodings are the accepted values of Content-Encoding.
func (s *httpServer) encodings() []string {
	return httpserver.AcceptedEncodings(s.cfg.Server.CompressionAlgorithms)
}

// answerTransportError answers for confighttp, which treats an unknown Content-Encoding as a bad request.
func (s *httpServer) answerTransportError(w http.ResponseWriter, r *http.Request, message string, code int) {
	if code == http.StatusBadRequest && r.Header.Get("Content-Encoding") != "" {
		code = http.StatusUnsupportedMediaType
		message = fmt.Sprintf("%s: use one of %s, or none", message, strings.Join(s.encodings(), ", "))
	}
	s.answerError(w, r, message, code)
}

// readBody reads a body within the limits, and charges the claim for the memory that check estimates. If that
// fails, it answers.
func (s *httpServer) readBody(w http.ResponseWriter, r *http.Request, claim *budget.Claim, check func([]byte) (int, error)) ([]byte, bool) {
	limit := s.maxBodyBytes
	if s.cfg.Server.MaxRequestBodySize > 0 {
		limit = min(limit, s.cfg.Server.MaxRequestBodySize)
	}
	body, err := httpserver.OpenBody(w, r, httpserver.BodyOptions{Claim: claim, LimitBytes: limit, Encodings: s.encodings()})
	var data []byte
	if err == nil {
		data, err = body.ReadAll()
	}
	memory := 0
	if err == nil {
		memory, err = check(data)
	}
	if err == nil {
		err = claim.Acquire(r.Context(), int64(memory))
	}
	if err == nil {
		return data, true
	}
	code := http.StatusServiceUnavailable
	var fault *httpserver.BodyError
	switch {
	case errors.As(err, &fault):
		code = fault.Status
	case errors.Is(err, pdatasize.ErrExpands):
		code = http.StatusRequestEntityTooLarge
	case errors.Is(err, pdatasize.ErrTooNested), errors.Is(err, pdatasize.ErrMalformed):
		code = http.StatusBadRequest
	}
	if code == http.StatusServiceUnavailable {
		httpserver.SetRetryAfter(w, httpserver.DefaultRetryDelay)
	}
	s.answerError(w, r, "read the body: "+err.Error(), code)
	return nil, false
}

const logsPath = "/v1/logs"

// startOTLP starts the server for OTLP logs over HTTP.
func (c *HTTPConfig) startOTLP(ctx context.Context, host component.Host, d delivery) (server, error) {
	s := &httpServer{delivery: d, cfg: c, answerError: httpserver.AnswerOTLPError}
	mux := http.NewServeMux()
	mux.HandleFunc(logsPath, s.handleLogs)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		httpserver.AnswerOTLPError(w, r, "nothing is here: send logs to "+logsPath, http.StatusNotFound)
	})
	return s.start(ctx, host, "OTLP logs over HTTP", mux)
}

func (s *httpServer) handleLogs(w http.ResponseWriter, r *http.Request) {
	content, ok := httpserver.AcceptOTLP(w, r)
	if !ok {
		return
	}
	claim := s.path.Budget.Begin()
	defer claim.Release()
	request := plogotlp.NewExportRequest()
	check, unmarshal := pdatasize.Logs, request.UnmarshalProto
	if content == httpserver.ContentJSON {
		check, unmarshal = pdatasize.JSON, request.UnmarshalJSON
	}
	body, ok := s.readBody(w, r, claim, check)
	if !ok {
		return
	}
	if err := unmarshal(body); err != nil {
		httpserver.AnswerOTLPError(w, r, "the body is not an ExportLogsServiceRequest: "+err.Error(), http.StatusBadRequest)
		return
	}
	response, err := export(r.Context(), s.path, request, claim)
	if err != nil {
		httpserver.AnswerOTLPStatus(w, r, status.Convert(err))
		return
	}
	httpserver.AnswerOTLP(w, r, response)
}
