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
		configgrpc.WithGrpcServerOption(grpc.ForceServerCodecV2(httpserver.RawCodec{})))
	if err != nil {
		return err
	}
	reserve := min(httpserver.MaxMessageBytes(cfg.MaxRecvMsgSizeMiB), r.cfg.maxBytesInFlight()/receivers)
	for _, name := range services {
		server.RegisterService(httpserver.ExportService(name, func(stream grpc.ServerStream) error {
			ctx, cancel := life.Context(stream.Context())
			defer cancel()
			claim := r.budget.Begin()
			defer claim.Release()
			data, err := life.Receive(ctx, stream, httpserver.Receiving{Claim: claim, ReserveBytes: reserve, Timeout: receiveTimeout})
			if err != nil {
				return err
			}
			if err := r.deliver(ctx, how, claim, metadata.ValueFromIncomingContext(ctx, versionHeader), data); err != nil {
				return httpserver.OTLPStatus(err).Err()
			}
			return stream.SendMsg(new([]byte)) // an ExportProfilesServiceResponse without fields
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

// receivers divides the budget: over gRPC, a message takes this part of it until its size is known, so that at most so many are
// received at a time. More senders wait.
const receivers = 16

// receiveTimeout is how long a message may take to arrive, as over HTTP.
const receiveTimeout = 30 * time.Second
