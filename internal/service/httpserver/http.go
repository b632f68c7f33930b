// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/config"
)

// CheckConfig returns the faults of a server's configuration.
func CheckConfig(c *confighttp.ServerConfig) error {
	var faults config.Faults
	faults.RequireListener(&c.NetAddr)
	for _, timeout := range []struct {
		key   string
		value time.Duration
	}{
		{"read_timeout", c.ReadTimeout}, {"read_header_timeout", c.ReadHeaderTimeout},
		{"write_timeout", c.WriteTimeout},
	} {
		faults.Require(timeout.value >= 0, "`%s` must not be negative, found %v", timeout.key, timeout.value)
	}
	if k := c.Keepalive.Get(); k != nil {
		faults.Require(k.IdleTimeout >= 0, "`keepalive.idle_timeout` must not be negative, found %v", k.IdleTimeout)
	}
	faults.Require(c.MaxRequestBodySize >= 0, "`max_request_body_size` must not be negative, found %d",
		c.MaxRequestBodySize)
	var unknown []string
	for _, name := range acceptedEncodings(c.CompressionAlgorithms) {
		if !slices.Contains(Encodings, name) {
			unknown = append(unknown, strconv.Quote(name))
		}
	}
	faults.Require(unknown == nil, "`compression_algorithms` must be among %s, found %s", strings.Join(Encodings, ", "),
		strings.Join(unknown, ", "))
	return faults.Err()
}

// acceptedEncodings returns the encodings to accept for confighttp's CompressionAlgorithms: nil means all, and "" is
// left out, since a body without an encoding is always accepted.
func acceptedEncodings(configured []string) []string {
	if configured == nil {
		return Encodings
	}
	return slices.DeleteFunc(slices.Clone(configured), func(name string) bool { return name == "" })
}

// HTTP starts servers as confighttp configures them. Its handlers read bodies by OpenBody or ReadBody.
type HTTP struct {
	Config *confighttp.ServerConfig
	// MaxBodyBytes bounds bodies in addition to Config; 0 adds no bound.
	MaxBodyBytes int64
	// AnswerError answers for confighttp, for example if a sender may not send, and to browsers that are refused unless
	// Browsers has an answer for them; nil answers with the message alone.
	AnswerError func(w http.ResponseWriter, r *http.Request, message string, code int)
	// Browsers is the rule for requests of browsers. Pages of the origins that Config lists may send here, too.
	Browsers Browsers
	// UnencryptedHTTP2 accepts HTTP/2 without TLS, too, as gRPC needs it.
	UnencryptedHTTP2 bool

	encodings []string
}

// Start binds the endpoint and begins to serve.
func (h *HTTP) Start(ctx context.Context, handler http.Handler, env Env) (*Server, error) {
	h.encodings = acceptedEncodings(h.Config.CompressionAlgorithms)
	if h.AnswerError == nil {
		h.AnswerError = func(w http.ResponseWriter, _ *http.Request, message string, code int) {
			http.Error(w, message, code)
		}
	}
	server, err := h.Config.ToServer(ctx, env.Host.GetExtensions(), env.Telemetry, handler,
		append(bodiesAsSent(), confighttp.WithErrorHandler(h.answerTransportError))...)
	if err != nil {
		return nil, err
	}
	if h.UnencryptedHTTP2 && !h.Config.TLS.HasValue() {
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
	}
	removeDeadSocket(ctx, &h.Config.NetAddr)
	listener, err := h.Config.ToListener(ctx)
	if err != nil {
		return nil, err
	}
	browsers := h.Browsers
	if cors := h.Config.CORS.Get(); cors != nil {
		browsers.AllowedOrigins = cors.AllowedOrigins
	}
	if browsers.Refuse == nil {
		browsers.Refuse = func(w http.ResponseWriter, r *http.Request, err error) {
			h.AnswerError(w, r, err.Error(), http.StatusForbidden)
		}
	}
	return Start(server, listener, Options{OnFailure: env.Fail, Browsers: browsers, Telemetry: env.Telemetry}), nil
}

// bodiesAsSent makes confighttp leave bodies encoded, because OpenBody decodes them within limits.
func bodiesAsSent() (options []confighttp.ToServerOption) {
	for _, encoding := range append([]string{"", "identity"}, Encodings...) {
		options = append(options, confighttp.WithDecoder(encoding, func(io.ReadCloser) (io.ReadCloser, error) {
			return nil, nil
		}))
	}
	return options
}

// Env has a server's dependencies on the Collector and on its component.
type Env struct {
	Host      component.Host
	Telemetry component.TelemetrySettings
}

// Fail stops the Collector, since a server has failed.
func (e Env) Fail(err error) {
	componentstatus.ReportStatus(e.Host, componentstatus.NewFatalErrorEvent(err))
}

// answerTransportError answers for confighttp, which treats an unknown Content-Encoding as a bad request.
func (h *HTTP) answerTransportError(w http.ResponseWriter, r *http.Request, message string, code int) {
	if code == http.StatusBadRequest && r.Header.Get("Content-Encoding") != "" {
		code = http.StatusUnsupportedMediaType
		message = fmt.Sprintf("%s: use one of %s, or none", message, strings.Join(h.encodings, ", "))
	}
	h.AnswerError(w, r, message, code)
}

// LimitBytes returns the size of the largest body, as sent and decoded.
func (h *HTTP) LimitBytes() int64 {
	limit := h.Config.MaxRequestBodySize // ToServer replaces 0 by its default
	if h.MaxBodyBytes > 0 {
		limit = min(limit, h.MaxBodyBytes)
	}
	return limit
}

// OpenBody opens a body within the limits, on the reservation. The error is a *BodyError.
func (h *HTTP) OpenBody(w http.ResponseWriter, r *http.Request, reservation *budget.Reservation) (*Body, error) {
	return OpenBody(w, r, h.bodyOptions(reservation))
}

// ReadBody reads a body within the limits. The reservation holds its size. The error is a *BodyError.
func (h *HTTP) ReadBody(w http.ResponseWriter, r *http.Request, reservation *budget.Reservation) ([]byte, error) {
	return ReadBody(w, r, h.bodyOptions(reservation))
}

func (h *HTTP) bodyOptions(reservation *budget.Reservation) BodyOptions {
	return BodyOptions{Reservation: reservation, LimitBytes: h.LimitBytes(), Encodings: h.encodings}
}
