// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
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

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
)

// pushPath is where profiles are pushed to.
const pushPath = "/v1/pprof"

// server takes profiles that are pushed over HTTP.
type server struct {
	cfg    *ServerConfig
	set    component.TelemetrySettings
	ingest *ingester

	// passedQueryKeys belong to the authenticator, not to the profile's identity.
	passedQueryKeys []string
	// encodings are the accepted values of Content-Encoding.
	encodings []string
	http      *httpserver.Server
	// address is where the server listens once started.
	address net.Addr
}

func newServer(cfg *ServerConfig, set component.TelemetrySettings, in *ingester) *server {
	s := &server{cfg: cfg, set: set, ingest: in}
	if auth := cfg.HTTP.Auth.Get(); auth != nil {
		s.passedQueryKeys = auth.RequestParameters
	}
	s.encodings = httpserver.Encodings
	if cfg.HTTP.CompressionAlgorithms != nil {
		s.encodings = slices.DeleteFunc(slices.Clone(cfg.HTTP.CompressionAlgorithms), func(name string) bool { return name == "" })
	}
	return s
}

func (*server) name() string { return sourceServer }

// Start binds the endpoint and begins to serve.
func (s *server) Start(ctx context.Context, host component.Host) error {
	mux := http.NewServeMux()
	mux.HandleFunc(pushPath, s.handlePush)
	mux.HandleFunc("/", s.handleElsewhere)
	options := []confighttp.ToServerOption{confighttp.WithErrorHandler(s.handleTransportError)}
	for _, encoding := range append([]string{"", "identity"}, httpserver.Encodings...) {
		// httpserver.OpenBody decodes bodies: within limits, and for the encodings that are not accepted with a better answer.
		options = append(options, confighttp.WithDecoder(encoding, func(io.ReadCloser) (io.ReadCloser, error) { return nil, nil }))
	}
	server, err := s.cfg.HTTP.ToServer(ctx, host.GetExtensions(), s.set, mux, options...)
	if err != nil {
		return err
	}
	listener, err := s.cfg.HTTP.ToListener(ctx)
	if err != nil {
		return err
	}
	s.address = listener.Addr()
	s.set.Logger.Info("ready for profiles; push one with: "+s.curlLine(), zap.Stringer("endpoint", s.address))
	s.http = httpserver.Start(server, listener, httpserver.Options{
		DrainTimeout: s.ingest.cfg.DrainTimeout,
		OnFailure:    func(err error) { componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err)) },
	})
	return nil
}

// Shutdown takes no new requests and waits until those under way are answered, so that what they carry has reached the
// pipeline. Senders that are slower than that, or that wait for a pipeline that is, are told to come back.
func (s *server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// curlLine is a command that pushes a profile to the address that was bound.
func (s *server) curlLine() string {
	const tail = pushPath + "?service.name=shop'"
	scheme := "http"
	if s.cfg.HTTP.TLS.HasValue() {
		scheme = "https"
	}
	tcp, ok := s.address.(*net.TCPAddr)
	if !ok {
		return fmt.Sprintf("curl --data-binary @cpu.pb.gz --unix-socket %s '%s://localhost%s", s.address, scheme, tail)
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "localhost"
	}
	return fmt.Sprintf("curl --data-binary @cpu.pb.gz '%s://%s%s", scheme, net.JoinHostPort(host, fmt.Sprint(tcp.Port)), tail)
}

func (s *server) handleElsewhere(w http.ResponseWriter, _ *http.Request) {
	writeAnswer(w, http.StatusNotFound, answer{Error: "nothing is here: push profiles to " + pushPath})
}

// handleTransportError answers for confighttp: for a Content-Encoding that it has never heard of (which it calls a bad
// request), and for a sender that auth refuses.
func (s *server) handleTransportError(w http.ResponseWriter, r *http.Request, message string, status int) {
	why := reasonBadRequest
	if status == http.StatusBadRequest && r.Header.Get("Content-Encoding") != "" {
		status, why = http.StatusUnsupportedMediaType, reasonEncoding
		message = fmt.Sprintf("%v: use one of %s, or none", message, strings.Join(s.encodings, ", "))
	}
	s.ingest.metrics.reject(r.Context(), sourceServer, why)
	writeAnswer(w, status, answer{Error: message})
}
