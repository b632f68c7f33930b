// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.uber.org/zap"
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
	http            *http.Server
	// address is where the server listens once started.
	address net.Addr
	serving sync.WaitGroup
}

func newServer(cfg *ServerConfig, set component.TelemetrySettings, in *ingester) *server {
	s := &server{cfg: cfg, set: set, ingest: in}
	if auth := cfg.HTTP.Auth.Get(); auth != nil {
		s.passedQueryKeys = auth.RequestParameters
	}
	return s
}

func (*server) name() string { return sourceServer }

// Start binds the endpoint and begins to serve.
func (s *server) Start(ctx context.Context, host component.Host) error {
	mux := http.NewServeMux()
	mux.HandleFunc(pushPath, s.handlePush)
	mux.HandleFunc("/", s.handleElsewhere)
	var err error
	s.http, err = s.cfg.HTTP.ToServer(ctx, host.GetExtensions(), s.set, mux,
		confighttp.WithErrorHandler(s.handleTransportError),
		// RFC 9110 section 8.4.1: "identity" names no encoding at all.
		confighttp.WithDecoder("identity", func(io.ReadCloser) (io.ReadCloser, error) { return nil, nil }),
	)
	if err != nil {
		return err
	}
	listener, err := s.cfg.HTTP.ToListener(ctx)
	if err != nil {
		return err
	}
	s.address = listener.Addr()
	s.set.Logger.Info("ready for profiles; push one with: "+s.curlLine(), zap.Stringer("endpoint", s.address))
	s.serving.Go(func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

// Shutdown takes no new requests and waits until those under way are answered, so that what they
// carry has reached the pipeline. When ctx ends first, their connections are cut: their senders
// get no answer and know that nothing was acknowledged.
func (s *server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.serving.Wait()
	return err
}

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

// handleTransportError answers for confighttp: for a Content-Encoding that it does not know (which
// it calls a bad request), one that the body does not have, and for a sender that auth refuses.
func (s *server) handleTransportError(w http.ResponseWriter, r *http.Request, message string, status int) {
	why := reasonBadRequest
	encoding := r.Header.Get("Content-Encoding")
	accepted := s.cfg.HTTP.CompressionAlgorithms
	if status == http.StatusBadRequest && encoding != "" && !slices.Contains(accepted, encoding) {
		status, why = http.StatusUnsupportedMediaType, reasonEncoding
		named := strings.Join(slices.DeleteFunc(slices.Clone(accepted), func(a string) bool { return a == "" }), ", ")
		message = fmt.Sprintf("Content-Encoding %q is unknown here: use one of %s, or none", encoding, named)
	}
	s.ingest.metrics.reject(r.Context(), sourceServer, why)
	writeAnswer(w, status, answer{Error: message})
}
