// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.uber.org/zap"
)

// httpServer is what the servers that speak HTTP have in common: its life.
type httpServer struct {
	key, ready string
	cfg        *HTTPConfig
	set        component.TelemetrySettings
	mux        *http.ServeMux
	// answerError answers for confighttp, for example where a sender may not send.
	answerError func(w http.ResponseWriter, r *http.Request, message string, code int)

	http *http.Server
	// address is where the server listens once started.
	address net.Addr
	serving sync.WaitGroup
}

func (s *httpServer) name() string { return s.key }

// Start binds the endpoint and begins to serve.
func (s *httpServer) Start(ctx context.Context, host component.Host) error {
	var err error
	s.http, err = s.cfg.Server.ToServer(ctx, host.GetExtensions(), s.set, s.mux, confighttp.WithErrorHandler(s.answerError))
	if err != nil {
		return err
	}
	listener, err := s.cfg.Server.ToListener(ctx)
	if err != nil {
		return err
	}
	s.address = listener.Addr()
	s.set.Logger.Info(s.ready, zap.Stringer("endpoint", s.address))
	s.serving.Go(func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

// Shutdown waits until the requests under way are answered. When ctx ends first, they are cut off.
func (s *httpServer) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.serving.Wait()
	return err
}

// readBody reads a body up to the limit, and gives the status to answer with where that does not work.
func readBody(r *http.Request) (body []byte, code int, err error) {
	var buffer bytes.Buffer
	// The header's word is believed up to a megabyte.
	buffer.Grow(int(min(max(r.ContentLength, 0), 1<<20)) + bytes.MinRead)
	if _, err := io.Copy(&buffer, r.Body); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return nil, http.StatusRequestEntityTooLarge, err
		}
		return nil, http.StatusBadRequest, err
	}
	return buffer.Bytes(), http.StatusOK, nil
}

// setRetryAfter asks for a delay in whole seconds (RFC 9110 section 10.2.3), one at least.
func setRetryAfter(w http.ResponseWriter, delay time.Duration) {
	if delay > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((delay+time.Second-1)/time.Second), 10))
	}
}
