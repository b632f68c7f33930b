// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package push is the source `server`: profiles that are pushed over HTTP.
//
// POST /v1/pprof accepts a profile or a form of several (push.go), whose sender the query names (query.go).
// pyroscope.go and datadog.go have the routes of Pyroscope's and Datadog's clients. Each opens the body on the
// budget, passes it to ingest, and answers once the pipeline has accepted the profiles (answer.go).
package push

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// The routes for profiles. They differ in name only: somebody with a Go trace would not look for pprof.
const (
	Path         = "/v1/pprof"
	ProfilesPath = "/v1/profiles"
)

// Server receives profiles that are pushed over HTTP.
type Server struct {
	cfg    *Config
	set    component.TelemetrySettings
	ingest *ingest.Ingester

	// passedQueryKeys belong to the authenticator, not to the profile's identity.
	passedQueryKeys []string
	http            httpserver.HTTP
	// running is nil before Start.
	running *httpserver.Server

	// unknownPathSenders are the hosts that posted to an unknown path.
	unknownPathSenders telemetry.Once[string]
}

// New returns a server that is not started.
func New(cfg *Config, set component.TelemetrySettings, in *ingest.Ingester) *Server {
	s := &Server{cfg: cfg, set: set, ingest: in}
	if auth := cfg.HTTP.Auth.Get(); auth != nil {
		s.passedQueryKeys = auth.RequestParameters
	}
	s.http = httpserver.HTTP{
		Config: &cfg.HTTP, MaxBodyBytes: in.MaxBytes(), AnswerError: s.answerError,
		UnencryptedHTTP2: cfg.Pyroscope.Enabled, // gRPC and Connect without TLS
	}
	return s
}

// Start binds the endpoint and begins to serve.
func (s *Server) Start(ctx context.Context, host component.Host) error {
	mux := http.NewServeMux()
	mux.HandleFunc(Path, s.handler(writeError, s.handlePush))
	mux.HandleFunc(ProfilesPath, s.handler(writeError, s.handlePush))
	mux.HandleFunc(DatadogPath, s.handler(writeError, s.handleDatadog))
	mux.HandleFunc("/", s.handleUnknownPath)
	var handler http.Handler = mux
	if s.cfg.Pyroscope.Enabled {
		s.registerPyroscope(mux)
		handler = withoutDoubleSlashes(mux)
	}
	running, err := s.http.Start(ctx, handler, httpserver.Env{Host: host, Telemetry: s.set})
	if err != nil {
		return err
	}
	s.running = running
	s.set.Logger.Info("ready for profiles; push one with: "+s.curlLine(), zap.Stringer("endpoint", s.Addr()))
	return nil
}

// Shutdown accepts no new requests and waits until those in progress are answered, so that their payloads have reached
// the pipeline. A request that takes too long, because of its sender or of the pipeline, is answered with a status that
// asks for a retry.
func (s *Server) Shutdown(ctx context.Context) error { return s.running.Shutdown(ctx) }

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.running.Addr() }

// ServeHTTP answers a request as if it had come over the listener.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.running.ServeHTTP(w, r) }

// curlLine returns a command that pushes a profile to the address that the server listens on.
func (s *Server) curlLine() string {
	const tail = Path + "?service.name=shop'"
	scheme := "http"
	if s.cfg.HTTP.TLS.HasValue() {
		scheme = "https"
	}
	tcp, ok := s.Addr().(*net.TCPAddr)
	if !ok {
		return fmt.Sprintf("curl --data-binary @cpu.pb.gz --unix-socket %s '%s://localhost%s", s.Addr(), scheme, tail)
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "localhost"
	}
	return fmt.Sprintf("curl --data-binary @cpu.pb.gz '%s://%s%s", scheme, net.JoinHostPort(host, fmt.Sprint(tcp.Port)),
		tail)
}

// pushRequest is a request in hand, with the body opened and a reservation for its memory.
type pushRequest struct {
	*http.Request
	body        *httpserver.Body
	reservation *budget.Reservation
}

// handler opens the body of a request for handle, and answers with write for the error that handle returns.
func (s *Server) handler(write errorWriter, handle func(http.ResponseWriter, *pushRequest) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			err := fmt.Errorf("method %s is not allowed here: use POST", r.Method)
			s.ingest.CountRejected(r.Context(), ingest.Reject(ingest.BadRequest, err))
			write(w, r, http.StatusMethodNotAllowed, err)
			return
		}
		reservation := s.ingest.Begin()
		defer reservation.Release()
		body, err := s.http.OpenBody(w, r, reservation)
		if err != nil {
			err = s.rejectionOf(err)
		} else {
			err = handle(w, &pushRequest{Request: r, body: body, reservation: reservation})
		}
		if err != nil {
			s.fail(w, r, write, err)
		}
	}
}

type namedPayload struct {
	name string
	ingest.Payload
}

// ingestAll decodes all payloads of a request before it delivers the first, so that nothing is accepted if one is bad.
// It then delivers them one by one, and goes on if the pipeline refuses one permanently. Its *formError lists the bad
// files, or, if the pipeline refuses one, what became of each. All payloads share the limits of one.
func (s *Server) ingestAll(ctx context.Context, payloads []namedPayload, shared *ingest.Shared) error {
	files := make([]pushedFile, 0, len(payloads))
	var bad []pushedFile
	for _, p := range payloads {
		p.Shared = shared
		file := pushedFile{Name: p.name, Error: "not tried"}
		if file.profiles, _, file.err = s.ingest.Decode(ctx, p.Payload); file.err == nil {
			files = append(files, file)
			continue
		}
		why := ingest.ReasonOf(file.err)
		if why == "" || ingest.IsBusy(file.err) {
			return file.err
		}
		file.Error = otlpstatus.Reason(file.err)
		bad = append(bad, file)
		if why == ingest.TooLarge {
			break // there is no room for the rest either
		}
	}
	if len(bad) > 0 {
		// The first file's fault decides the status.
		err := bad[0].err
		if bad[0].Name != "" {
			err = fmt.Errorf("nothing was accepted: file %q: %w (%d of %d files are bad)", bad[0].Name, err, len(bad),
				len(payloads))
		}
		return &formError{err, bad}
	}
	if len(payloads) > 0 {
		payloads[0].Reservation.DropBody()
	}
	var refused error
	for i := range files {
		file := &files[i]
		err := s.ingest.Deliver(ctx, file.profiles, 0)
		if err == nil {
			file.Error = ""
			continue
		}
		file.Error = otlpstatus.Reason(err)
		if !otlpstatus.IsPermanent(err) {
			return &formError{err, files} // the sender repeats all of them
		}
		if refused == nil {
			refused = err
		}
	}
	if refused != nil {
		return &formError{refused, files}
	}
	return nil
}

// handleUnknownPath answers for a path that does not exist. It logs a sender once: clients such as Pyroscope's for
// Node.js drop the answer silently.
func (s *Server) handleUnknownPath(w http.ResponseWriter, r *http.Request) {
	message := "nothing is here: push profiles to " + Path + ", or as Datadog's libraries do to " + DatadogPath
	if s.cfg.Pyroscope.Enabled {
		message += ", or as Pyroscope's clients do to /ingest or " + connectPath
	}
	message += ". The page of flame graphs is the exporter profile_store's, by default on port 4042; OTLP profiles go to 4318"
	err := errors.New(message)
	if r.Method == http.MethodPost {
		s.ingest.CountRejected(r.Context(), ingest.Reject(ingest.UnknownPath, err))
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil && s.unknownPathSenders.IsNew(host) {
			s.set.Logger.Warn("received a request to a path that does not exist; "+message,
				zap.String("sender", host),
				zap.String("path", strings.ToValidUTF8(r.URL.Path[:min(len(r.URL.Path), 200)], "\uFFFD")))
		}
	}
	writeError(w, r, http.StatusNotFound, err)
}

// answerError answers where the request reaches no route: its Content-Encoding is unknown, or it may not send.
func (s *Server) answerError(w http.ResponseWriter, r *http.Request, message string, status int) {
	why := ingest.BadRequest
	if status == http.StatusUnsupportedMediaType {
		why = ingest.Encoding
	}
	err := errors.New(message)
	s.ingest.CountRejected(r.Context(), ingest.Reject(why, err))
	write := writeError
	if s.cfg.Pyroscope.Enabled && isPyroscope(r.URL.Path) {
		write = writePyroscopeError
	}
	write(w, r, status, err)
}
