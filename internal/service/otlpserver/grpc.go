// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpserver

import (
	"context"

	"go.opentelemetry.io/collector/config/configgrpc"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
)

// GRPC is a gRPC server.
type GRPC struct {
	Config *GRPCConfig
	// MaxBytes bounds messages, as sent and decompressed, in addition to Config; 0 adds no bound.
	MaxBytes int64
	Signals  []Signal

	maxBytes int64
	server   *httpserver.GRPC
}

// Start binds the endpoint and begins to serve.
func (g *GRPC) Start(ctx context.Context, env httpserver.Env) (Server, error) {
	g.maxBytes = httpserver.MaxMessageBytes(g.Config.Server.MaxRecvMsgSizeMiB)
	if g.MaxBytes > 0 {
		g.maxBytes = min(g.maxBytes, g.MaxBytes)
	}
	g.server = httpserver.NewGRPC(httpserver.Options{OnFailure: env.Fail})
	server, err := g.Config.Server.ToServer(ctx, env.Host.GetExtensions(), env.Telemetry,
		configgrpc.WithGrpcServerOption(grpc.ForceServerCodecV2(httpserver.RawCodec{})),
		configgrpc.WithGrpcServerOption(httpserver.LimitStreams(g.Config.Server.MaxConcurrentStreams)),
		configgrpc.WithGrpcServerOption(httpserver.LimitCalls()),
		configgrpc.WithGrpcServerOption(grpc.MaxRecvMsgSize(int(g.maxBytes))))
	if err != nil {
		return Server{}, err
	}
	for _, signal := range g.Signals {
		for _, name := range signal.Services {
			server.RegisterService(httpserver.ExportService(name, func(stream grpc.ServerStream) error { return g.handle(signal, stream) }), g)
		}
	}
	listener, err := g.Config.Server.NetAddr.Listen(ctx)
	if err != nil {
		return Server{}, err
	}
	g.server.Serve(server, listener)
	env.Telemetry.Logger.Info("ready for OTLP over gRPC", zap.Stringer("endpoint", listener.Addr()))
	return Server{Address: listener.Addr(), Shutdown: g.server.Shutdown}, nil
}

// handle answers one request.
func (g *GRPC) handle(signal Signal, stream grpc.ServerStream) error {
	ctx, cancel := g.server.Context(stream.Context())
	defer cancel()
	claim := budget.Process().Begin()
	defer claim.Release()
	data, err := g.server.Receive(ctx, stream, httpserver.Receiving{Claim: claim, MaxBytes: g.maxBytes, Timeout: g.Config.ReadTimeout})
	if err != nil {
		return err
	}
	response, err := signal.Export(ctx, &Message{Data: data, Claim: claim, Header: func(key string) []string {
		return metadata.ValueFromIncomingContext(ctx, key)
	}})
	if err != nil {
		return httpserver.OTLPStatus(err).Err()
	}
	answer, err := response.MarshalProto()
	if err != nil {
		return err
	}
	return stream.SendMsg(&answer)
}
