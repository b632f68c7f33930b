// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
)

// HTTP is an HTTP server.
type HTTP struct {
	httpserver.HTTP
	Signals []Signal
}

// Start binds the endpoint and begins to serve.
func (h *HTTP) Start(ctx context.Context, env httpserver.Env) (Server, error) {
	h.AnswerError = httpserver.AnswerOTLPError
	mux := http.NewServeMux()
	var hints []string
	for _, signal := range h.Signals {
		for _, path := range signal.Paths {
			mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { h.handle(signal, w, r) })
		}
		hints = append(hints, signal.Name+" to "+signal.Paths[0])
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		httpserver.AnswerOTLPError(w, r, "nothing is here: send "+strings.Join(hints, ", "), http.StatusNotFound)
	})
	running, err := h.HTTP.Start(ctx, mux, env)
	if err != nil {
		return Server{}, err
	}
	env.Telemetry.Logger.Info("ready for OTLP over HTTP", zap.Stringer("endpoint", running.Address))
	return Server{Address: running.Address, Shutdown: running.Shutdown}, nil
}

// handle answers one request: 200 once the pipeline has accepted what the message has.
func (h *HTTP) handle(signal Signal, w http.ResponseWriter, r *http.Request) {
	content, ok := httpserver.AcceptOTLP(w, r)
	if !ok {
		return
	}
	claim := budget.Process().Begin()
	defer claim.Release()
	data, err := h.ReadBody(w, r, claim)
	var response Response
	if err != nil {
		err = fmt.Errorf("read the body: %w", err)
	} else {
		response, err = signal.Export(r.Context(), &Message{
			Data: data, IsJSON: content == httpserver.ContentJSON, Claim: claim, Header: r.Header.Values,
		})
	}
	if err != nil {
		httpserver.AnswerOTLPFailure(w, r, err)
		return
	}
	httpserver.AnswerOTLP(w, r, response)
}
