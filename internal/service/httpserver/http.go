// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
)

// HTTP starts servers that receive bodies, as confighttp configures them. Its handlers read bodies by ReadBody.
type HTTP struct {
	Config *confighttp.ServerConfig
	// MaxBodyBytes bounds bodies in addition to Config; 0 adds no bound.
	MaxBodyBytes int64
	// AnswerError answers for confighttp, for example if a sender may not send.
	AnswerError func(w http.ResponseWriter, r *http.Request, message string, code int)

	encodings []string
}

// Start binds the endpoint and begins to serve.
func (h *HTTP) Start(ctx context.Context, handler http.Handler, env Env) (*Server, net.Addr, error) {
	h.encodings = AcceptedEncodings(h.Config.CompressionAlgorithms)
	server, err := h.Config.ToServer(ctx, env.Host.GetExtensions(), env.Telemetry, handler,
		append(BodiesAsSent(), confighttp.WithErrorHandler(h.answerTransportError))...)
	if err != nil {
		return nil, nil, err
	}
	listener, err := h.Config.ToListener(ctx)
	if err != nil {
		return nil, nil, err
	}
	return Start(server, listener, Options{
		OnFailure: env.Fail,
		Browsers: OfOrigins(h.Config.CORS, func(w http.ResponseWriter, r *http.Request, err error) {
			h.AnswerError(w, r, err.Error(), http.StatusForbidden)
		}),
	}), listener.Addr(), nil
}

// BodiesAsSent makes confighttp leave bodies encoded, because OpenBody decodes them within limits.
func BodiesAsSent() (options []confighttp.ToServerOption) {
	for _, encoding := range append([]string{"", "identity"}, Encodings...) {
		options = append(options, confighttp.WithDecoder(encoding, func(io.ReadCloser) (io.ReadCloser, error) { return nil, nil }))
	}
	return options
}

// Env is what a server needs of the Collector, and of its component.
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

// ReadBody reads a body within the limits. The claim holds its size. The error is a *BodyError.
func (h *HTTP) ReadBody(w http.ResponseWriter, r *http.Request, claim *budget.Claim) ([]byte, error) {
	limit := h.Config.MaxRequestBodySize // ToServer replaces 0 by its default
	if h.MaxBodyBytes > 0 {
		limit = min(limit, h.MaxBodyBytes)
	}
	body, err := OpenBody(w, r, BodyOptions{Claim: claim, LimitBytes: limit, Encodings: h.encodings})
	if err != nil {
		return nil, err
	}
	return body.ReadAll()
}
