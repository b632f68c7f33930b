// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/senders"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

// noted notes the outcome of a request that brings data. It keeps the start of an answer that refuses it, which has the
// reason.
type noted struct {
	http.ResponseWriter
	outcomes outcomes
	status   int
	reason   []byte
}

// outcomes notes what becomes of the requests of a server, and counts those that are not accepted, unless failed is
// nil.
type outcomes struct{ failed metric.Int64Counter }

func (o outcomes) note(request senders.Request, port, reason string) {
	senders.Note(request, reason, time.Now())
	if o.failed != nil && request.Status >= http.StatusBadRequest {
		o.failed.Add(context.Background(), 1, telemetry.Attributes("port", port, "status", strconv.Itoa(request.Status)))
	}
}

const maxReasonBytes = 1 << 10

func (n *noted) WriteHeader(status int) {
	n.status = cmp.Or(n.status, status)
	n.ResponseWriter.WriteHeader(status)
}

func (n *noted) Write(p []byte) (int, error) {
	n.status = cmp.Or(n.status, http.StatusOK)
	if n.status >= http.StatusBadRequest {
		n.reason = append(n.reason, p[:min(len(p), maxReasonBytes-len(n.reason))]...)
	}
	return n.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (n *noted) Unwrap() http.ResponseWriter { return n.ResponseWriter }

// Flush is for gRPC.
func (n *noted) Flush() { _ = http.NewResponseController(n.ResponseWriter).Flush() }

// note records the outcome of a request. Requests that only read, such as health checks, do not come from senders.
func (n *noted) note(r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
		return
	}
	endpoint, port := r.Method+" "+r.URL.Path, ""
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		port = portOf(local.String())
		endpoint = r.Method + " :" + port + r.URL.Path
	}
	n.outcomes.note(senders.Request{Address: addressOf(r.RemoteAddr), Endpoint: endpoint,
		Status: cmp.Or(n.status, http.StatusOK)}, port, reasonOf(n.reason))
}

// messageField finds the message of an answer in JSON, which may be cut.
var messageField = regexp.MustCompile(`"(?:error|message)"\s*:\s*"((?:[^"\\]|\\.)*)`)

// reasonOf returns the message of an answer, or all of it.
func reasonOf(answer []byte) string {
	if field := messageField.FindSubmatch(answer); field != nil {
		var message string
		if json.Unmarshal(slices.Concat([]byte{'"'}, field[1], []byte{'"'}), &message) == nil {
			return message
		}
	}
	return string(answer)
}

func addressOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address) // empty for a Unix socket
	return port
}

// noteCalls notes what becomes of the calls of gRPC, those of senders that may not send included. gRPC's own services,
// such as health checks, do not bring data.
func noteCalls(outcomes outcomes) grpc.ServerOption {
	return grpc.StreamInterceptor(func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
		next grpc.StreamHandler) error {
		err := next(service, stream)
		p, ok := peer.FromContext(stream.Context())
		if !ok || strings.HasPrefix(info.FullMethod, "/grpc.") {
			return err
		}
		s, code, port := status.Convert(err), http.StatusOK, ""
		if err != nil {
			code = otlpstatus.ToHTTP(s)
		}
		endpoint := "gRPC"
		if p.LocalAddr != nil {
			port = portOf(p.LocalAddr.String())
			endpoint += " :" + port
		}
		outcomes.note(senders.Request{Address: addressOf(p.Addr.String()), Endpoint: endpoint, Status: code}, port,
			s.Message())
		return err
	})
}
