// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/admission"
	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pdatasize"
)

// httpServer is what the servers that speak HTTP have in common.
type httpServer struct {
	delivery
	key, ready string
	cfg        *HTTPConfig
	mux        *http.ServeMux
	// answerError answers for confighttp, for example if a sender may not send, and for bodies that cannot be read.
	answerError func(w http.ResponseWriter, r *http.Request, message string, code int)

	http *httpserver.Server
	// address is where the server listens once started.
	address net.Addr
}

func (s *httpServer) name() string { return s.key }

// Start binds the endpoint and begins to serve.
func (s *httpServer) Start(ctx context.Context, host component.Host) error {
	options := []confighttp.ToServerOption{confighttp.WithErrorHandler(s.answerTransportError)}
	for _, encoding := range append([]string{"", "identity"}, httpserver.Encodings...) {
		// httpserver.OpenBody decodes bodies, within limits.
		options = append(options, confighttp.WithDecoder(encoding, func(io.ReadCloser) (io.ReadCloser, error) { return nil, nil }))
	}
	server, err := s.cfg.Server.ToServer(ctx, host.GetExtensions(), s.set, s.mux, options...)
	if err != nil {
		return err
	}
	listener, err := s.cfg.Server.ToListener(ctx)
	if err != nil {
		return err
	}
	s.address = listener.Addr()
	s.set.Logger.Info(s.ready, zap.Stringer("endpoint", s.address))
	s.http = httpserver.Start(server, listener, httpserver.Options{
		DrainTimeout: s.drainTimeout,
		OnFailure:    func(err error) { componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err)) },
	})
	return nil
}

// Shutdown waits until the requests under way are answered, for the drain timeout at most.
func (s *httpServer) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// encodings are the accepted values of Content-Encoding.
func (s *httpServer) encodings() []string {
	if s.cfg.Server.CompressionAlgorithms == nil {
		return httpserver.Encodings
	}
	return slices.DeleteFunc(slices.Clone(s.cfg.Server.CompressionAlgorithms), func(name string) bool { return name == "" })
}

// answerTransportError answers for confighttp, which calls a Content-Encoding that it has never heard of a bad request.
func (s *httpServer) answerTransportError(w http.ResponseWriter, r *http.Request, message string, code int) {
	if code == http.StatusBadRequest && r.Header.Get("Content-Encoding") != "" {
		code = http.StatusUnsupportedMediaType
		message = fmt.Sprintf("%s: use one of %s, or none", message, strings.Join(s.encodings(), ", "))
	}
	s.answerError(w, r, message, code)
}

// readBody reads a body within the limits, and charges the claim for what check says it becomes in memory. If that does
// not work, it answers.
func (s *httpServer) readBody(w http.ResponseWriter, r *http.Request, claim *admission.Claim, check func([]byte) (int, error)) ([]byte, bool) {
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
