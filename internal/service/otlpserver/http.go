// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
)

// unknownBodyBytes is how much is read of a body that was sent to an unknown path.
const unknownBodyBytes = 4 << 20

func (p *Protocols) startHTTP(ctx context.Context, env httpserver.Env, signals []Signal) (Server, error) {
	server := &httpserver.HTTP{Config: &p.HTTP.Server, MaxBodyBytes: p.MaxBytes, AnswerError: httpserver.AnswerOTLPError}
	mux := http.NewServeMux()
	var hints []string
	for _, signal := range signals {
		for _, path := range signal.Paths {
			mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { signal.exportHTTP(server, w, r) })
		}
		hints = append(hints, signal.Name+" to "+signal.Paths[0])
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// A client that is still sending would see a reset connection instead of the answer.
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, unknownBodyBytes))
		httpserver.AnswerOTLPError(w, r, "nothing is here: send "+strings.Join(hints, ", "), http.StatusNotFound)
	})
	running, err := server.Start(ctx, mux, env)
	if err != nil {
		return nil, err
	}
	env.Telemetry.Logger.Info("ready for OTLP over HTTP", zap.Stringer("endpoint", running.Addr()))
	return running, nil
}

// exportHTTP answers one request: 200 once the pipeline has accepted what the message has.
func (s *Signal) exportHTTP(server *httpserver.HTTP, w http.ResponseWriter, r *http.Request) {
	content, ok := httpserver.AcceptOTLP(w, r)
	if !ok {
		return
	}
	claim := budget.Process().Begin()
	defer claim.Release()
	data, err := server.ReadBody(w, r, claim)
	var response Response
	if err != nil {
		err = fmt.Errorf("read the body: %w", err)
	} else {
		response, err = s.Export(r.Context(), &Message{
			Data: data, IsJSON: content == httpserver.ContentJSON, Claim: claim, Header: r.Header.Values,
		})
	}
	if err != nil {
		httpserver.AnswerOTLPFailure(w, r, err)
		return
	}
	httpserver.AnswerOTLP(w, r, response)
}
