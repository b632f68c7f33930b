// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"context"
	"errors"
	"io"
	"net/http"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlplayouts"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
)

// The paths that OTLP profiles were posted to. Either accepts every layout.
var paths = []string{"/v1development/profiles", "/v1experimental/profiles"}

func (r *otlpReceiver) startHTTP(ctx context.Context, host component.Host, cfg *HTTPConfig, options httpserver.Options) error {
	h := &httpHandler{receiver: r, cfg: &cfg.Server}
	var errProto, errJSON error
	h.proto, errProto = r.newReading("http", otlplayouts.Unmarshal, formatProtobuf)
	h.json, errJSON = r.newReading("http", otlplayouts.UnmarshalJSON, formatJSON)
	if err := errors.Join(errProto, errJSON); err != nil {
		return err
	}
	mux := http.NewServeMux()
	for _, path := range paths {
		mux.Handle(path, h)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		httpserver.AnswerOTLPError(w, req, "nothing is here: send profiles to "+paths[0], http.StatusNotFound)
	})
	// OpenBody decodes the body within the receiver's limits, so confighttp must not.
	var decoders []confighttp.ToServerOption
	for _, encoding := range append([]string{"identity"}, httpserver.Encodings...) {
		decoders = append(decoders, confighttp.WithDecoder(encoding, func(io.ReadCloser) (io.ReadCloser, error) { return nil, nil }))
	}
	server, err := cfg.Server.ToServer(ctx, host.GetExtensions(), r.set.TelemetrySettings, mux, decoders...)
	if err != nil {
		return err
	}
	listener, err := cfg.Server.ToListener(ctx)
	if err != nil {
		return err
	}
	r.addresses["http"] = listener.Addr()
	options.Browsers = httpserver.OfOrigins(cfg.Server.CORS, func(w http.ResponseWriter, r *http.Request, err error) {
		httpserver.AnswerOTLPError(w, r, err.Error(), http.StatusForbidden)
	})
	r.http = httpserver.Start(server, listener, options)
	r.set.Logger.Info("ready for OTLP profiles over HTTP", zap.Stringer("endpoint", listener.Addr()))
	return nil
}

type httpHandler struct {
	receiver    *otlpReceiver
	cfg         *confighttp.ServerConfig
	proto, json reading
}

// ServeHTTP answers one request: 200 once the pipeline has accepted the profiles.
func (h *httpHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, ok := httpserver.AcceptOTLP(w, r)
	if !ok {
		return
	}
	how := h.proto
	if content == httpserver.ContentJSON {
		how = h.json
	}
	claim := budget.Process().Begin()
	defer claim.Release()
	data, err := h.readBody(w, r, claim)
	if err != nil {
		var fault *httpserver.BodyError
		if errors.As(err, &fault) && fault.Status != http.StatusServiceUnavailable {
			httpserver.AnswerOTLPError(w, r, "read body: "+err.Error(), fault.Status)
		} else {
			httpserver.AnswerOTLPStatus(w, r, httpserver.OTLPStatus(err))
		}
		return
	}
	response, err := h.receiver.deliver(r.Context(), how, claim, r.Header.Values(versionHeader), data)
	if err != nil {
		httpserver.AnswerOTLPStatus(w, r, httpserver.OTLPStatus(err))
		return
	}
	httpserver.AnswerOTLP(w, r, response)
}

func (h *httpHandler) readBody(w http.ResponseWriter, r *http.Request, claim *budget.Claim) ([]byte, error) {
	body, err := httpserver.OpenBody(w, r, httpserver.BodyOptions{
		Claim: claim, LimitBytes: h.cfg.MaxRequestBodySize, Encodings: httpserver.AcceptedEncodings(h.cfg.CompressionAlgorithms),
	})
	if err != nil {
		return nil, err
	}
	return body.ReadAll()
}
