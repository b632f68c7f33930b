// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpserver has the common parts of the project's servers:
//   - Start and Shutdown: a server stops in time, regardless of what its clients and the pipeline do.
//   - HTTP, GRPC: servers as confighttp and configgrpc configure them, which receive on the budget.
//   - MaxConnections, MaxStreams, MaxRequests: bounds on a server's open ones.
//   - OpenBody: decodes a request's body within limits, on the budget.
//   - SetRetryAfter, AnswerOTLPFailure, Answer: the answer to an error of the pipeline.
//   - SameOriginOnly, KeepMethod: the redirects that the project's clients follow.
//   - Browsers: refuses requests that another site made a browser send.
package httpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/await"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shutdown"
)

// Options configure a server.
type Options struct {
	// OnFailure is called if the server stops without Shutdown.
	OnFailure func(error)
	// Browsers is the rule for requests of browsers.
	Browsers Browsers
	// Telemetry is for metrics and log lines of refusals; the zero value reports nothing.
	Telemetry component.TelemetrySettings
}

// Server is an HTTP server that was started.
type Server struct {
	http    *http.Server
	address net.Addr
	options Options
	serving sync.WaitGroup
	// requests are the handlers under way.
	requests open
	// serveCtx ends when requests must end and bodies are no longer read, shortly before connections are closed.
	serveCtx       context.Context
	cancelRequests context.CancelFunc
}

// Start serves on listener until Shutdown. The server must not be used before; its BaseContext is replaced.
//
// The context of a request ends when nine tenths of the server's WriteTimeout have passed, so that there is time to
// answer: without an answer, a client would repeat a request that the pipeline may have accepted.
func Start(server *http.Server, listener net.Listener, options Options) *Server {
	s := &Server{http: server, address: listener.Addr(), options: options,
		requests: open{limit: MaxRequests, refused: newRefusals(options.Telemetry, refusedRequests)}}
	s.serveCtx, s.cancelRequests = context.WithCancel(context.Background())
	server.BaseContext = func(net.Listener) context.Context { return s.serveCtx }
	newConnections(newRefusals(options.Telemetry, refusedConnections)).limitHTTP(server)
	next, noting := server.Handler, outcomes{newCounter(options.Telemetry, failedRequests)}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := w
		if !options.Browsers.IsPage {
			n := &noted{ResponseWriter: w, outcomes: noting}
			defer n.note(r)
			w = n
		}
		from := networkOf(r.RemoteAddr)
		if !s.requests.begin(from) {
			SetRetryAfter(w, otlpstatus.DefaultRetryDelay)
			http.Error(w, errTooManyRequests.Error(), http.StatusServiceUnavailable)
			return
		}
		defer s.requests.end(from)
		if err := options.Browsers.Check(r); err != nil {
			if options.Browsers.Refuse == nil {
				http.Error(w, err.Error(), http.StatusForbidden)
			} else {
				options.Browsers.Refuse(w, r, err)
			}
			return
		}
		interrupted := make(chan struct{})
		interrupt := context.AfterFunc(s.serveCtx, func() {
			defer close(interrupted)
			_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // a read under way returns
		})
		defer func() {
			if !interrupt() {
				<-interrupted // w must not be used after the handler
			}
		}()
		reading := &bodyReading{stopping: s.serveCtx, writer: own, unread: discardBytes}
		ctx := context.WithValue(r.Context(), bodyReadingKey{}, reading)
		if server.WriteTimeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, server.WriteTimeout-server.WriteTimeout/10)
			defer cancel()
		}
		normalizeEncodings(r.Header)
		next.ServeHTTP(w, r.WithContext(ctx))
		reading.discard(ctx, r)
	})
	s.serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) && options.OnFailure != nil {
			options.OnFailure(err)
		}
	})
	return s
}

// normalizeEncodings writes content codings as confighttp expects them. By RFC 9110, section 8.4.1, case does not
// matter, and x-gzip is gzip.
func normalizeEncodings(header http.Header) {
	values := header["Content-Encoding"]
	for i, encoding := range values {
		if values[i] = strings.ToLower(encoding); values[i] == "x-gzip" {
			values[i] = "gzip"
		}
	}
}

// bodyReading is what reading a request's body needs of the server.
type bodyReading struct {
	// stopping ends when bodies are no longer read.
	stopping context.Context
	// writer is the server's own: handlers in between wrap it.
	writer http.ResponseWriter
	// unread is how many bytes are received at most that the handler does not read.
	unread int64
}

type bodyReadingKey struct{}

// close makes the server close the connection half a second after the answer, as net/http does if MaxBytesReader
// refuses a body.
func (b *bodyReading) close() {
	_, _ = http.MaxBytesReader(b.writer, io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}

// Bounds on how long, and how much of a body that nobody opened, the rest of a body is received.
const (
	discardTime  = 5 * time.Second
	discardBytes = 16 << 20
)

// discard receives what a handler has not read of a body, unless it is too long: many clients read the answer only once
// they have sent everything, and would see a reset connection instead. A client that expects "100 Continue" sends
// nothing before it has an answer. Whatever the handler reserved is released by now.
func (b *bodyReading) discard(ctx context.Context, r *http.Request) {
	if r.Body == http.NoBody || r.ContentLength > b.unread || r.Header.Get("Expect") != "" {
		return
	}
	until := time.Now().Add(discardTime)
	if end, ok := ctx.Deadline(); ok && end.Before(until) { // the answer must be written by then
		until = end
	}
	if http.NewResponseController(b.writer).SetReadDeadline(until) == nil && b.stopping.Err() == nil {
		_, _ = io.CopyN(io.Discard, r.Body, b.unread)
	}
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.address }

// ServeHTTP handles a request as if it came from the listener.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.http.Handler.ServeHTTP(w, r) }

// Shutdown accepts no new requests and waits for those under way until shortly before the deadline of ctx
// (shutdown.Drain). Then bodies are no longer read, and the contexts of all requests end, so that handlers can answer:
// their senders should retry. At the end, connections are closed. The error has the number of requests that had not
// ended.
func (s *Server) Shutdown(ctx context.Context) error {
	work, ctx, cancel := shutdown.Drain(ctx)
	defer cancel()
	err := s.http.Shutdown(work)
	s.cancelRequests()
	if err != nil {
		// The listener is closed, but connections are left, with or without a request.
		err = nil
		for s.requests.count() > 0 && err == nil {
			if !await.Sleep(ctx, 5*time.Millisecond) {
				err = fmt.Errorf("%d requests had not ended and were cut off: %w", s.requests.count(), ctx.Err())
			}
		}
		// HTTP/2 writes an answer after its handler has returned.
		flush, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		_ = s.http.Shutdown(flush)
		err = errors.Join(err, s.http.Close())
	}
	s.serving.Wait()
	return err
}
