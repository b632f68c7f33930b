// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpprofilesreceiver

import (
	"context"

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
		configgrpc.WithGrpcServerOption(grpc.ChainUnaryInterceptor(life.Interceptor)),
		configgrpc.WithGrpcServerOption(grpc.ForceServerCodecV2(httpserver.RawCodec{})))
	if err != nil {
		return err
	}
	export := func(_ any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		var data []byte
		if err := decode(&data); err != nil {
			return nil, err
		}
		handle := func(ctx context.Context, request any) (any, error) {
			// An answer is an ExportProfilesServiceResponse without fields.
			return new([]byte), r.export(ctx, how, *request.(*[]byte))
		}
		if intercept == nil {
			return handle(ctx, &data)
		}
		return intercept(ctx, &data, &grpc.UnaryServerInfo{Server: r, FullMethod: grpcMethod(ctx)}, handle)
	}
	for _, name := range services {
		server.RegisterService(&grpc.ServiceDesc{
			ServiceName: name, HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: export}},
		}, r)
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

func grpcMethod(ctx context.Context) string {
	method, _ := grpc.Method(ctx)
	return method
}

// export delivers the profiles of one call. Its error has a gRPC status.
func (r *otlpReceiver) export(ctx context.Context, how reading, data []byte) error {
	claim := r.budget.Begin()
	defer claim.Release()
	claim.Complete() // gRPC has received the whole message
	if err := claim.Acquire(ctx, int64(len(data))); err != nil {
		return httpserver.OTLPStatus(err).Err()
	}
	if err := r.deliver(ctx, how, metadata.ValueFromIncomingContext(ctx, versionHeader), data); err != nil {
		return httpserver.OTLPStatus(err).Err()
	}
	return nil
}
