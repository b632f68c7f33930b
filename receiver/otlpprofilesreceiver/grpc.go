// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlplayouts"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
)

// The services that OTLP profiles were exported to.
var services = []string{
	"opentelemetry.proto.collector.profiles.v1development.ProfilesService",
	"opentelemetry.proto.collector.profiles.v1experimental.ProfilesService",
}

func (r *otlpReceiver) startGRPC(ctx context.Context, host component.Host, cfg *configgrpc.ServerConfig, options httpserver.Options) error {
	how, err := r.newReading("grpc", otlplayouts.Unmarshal, formatProtobuf)
	if err != nil {
		return err
	}
	life := httpserver.NewGRPC(options)
	server, err := cfg.ToServer(ctx, host.GetExtensions(), r.set.TelemetrySettings,
		configgrpc.WithGrpcServerOption(grpc.ForceServerCodecV2(httpserver.RawCodec{})),
		configgrpc.WithGrpcServerOption(httpserver.LimitStreams(cfg.MaxConcurrentStreams)),
		configgrpc.WithGrpcServerOption(httpserver.LimitCalls()))
	if err != nil {
		return err
	}
	for _, name := range services {
		server.RegisterService(httpserver.ExportService(name, func(stream grpc.ServerStream) error {
			ctx, cancel := life.Context(stream.Context())
			defer cancel()
			claim := budget.Process().Begin()
			defer claim.Release()
			data, err := life.Receive(ctx, stream, httpserver.Receiving{Claim: claim, MaxBytes: httpserver.MaxMessageBytes(cfg.MaxRecvMsgSizeMiB), Timeout: receiveTimeout})
			if err != nil {
				return err
			}
			response, err := r.deliver(ctx, how, claim, metadata.ValueFromIncomingContext(ctx, versionHeader), data)
			if err != nil {
				return httpserver.OTLPStatus(err).Err()
			}
			answer, err := response.MarshalProto()
			if err != nil {
				return err
			}
			return stream.SendMsg(&answer)
		}), r)
	}
	listener, err := cfg.NetAddr.Listen(ctx)
	if err != nil {
		return err
	}
	r.grpc, r.addresses["grpc"] = life, listener.Addr()
	life.Serve(server, listener)
	r.set.Logger.Info("ready for OTLP profiles over gRPC", zap.Stringer("endpoint", listener.Addr()))
	return nil
}

// receiveTimeout is how long a message may take to arrive. Until then it holds a part of the budget, whatever has arrived.
const receiveTimeout = 10 * time.Second
