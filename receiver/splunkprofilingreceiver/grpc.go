// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pdatasize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunkdelivery"
)

// logsService is OTLP's service for logs.
const logsService = "opentelemetry.proto.collector.logs.v1.LogsService"

// grpcServer receives OTLP logs over gRPC.
type grpcServer struct {
	delivery
	cfg  *GRPCConfig
	life *httpserver.GRPC
}

// start binds the endpoint and begins to serve.
func (c *GRPCConfig) start(ctx context.Context, host component.Host, d delivery) (server, error) {
	s := &grpcServer{delivery: d, cfg: c, life: httpserver.NewGRPC(d.options)}
	g, err := c.Server.ToServer(ctx, host.GetExtensions(), s.set,
		configgrpc.WithGrpcServerOption(grpc.ForceServerCodecV2(httpserver.RawCodec{})),
		configgrpc.WithGrpcServerOption(grpc.MaxRecvMsgSize(int(s.maxMessageBytes()))),
		configgrpc.WithGrpcServerOption(httpserver.LimitStreams(c.Server.MaxConcurrentStreams)),
		configgrpc.WithGrpcServerOption(httpserver.LimitCalls()),
	)
	if err != nil {
		return server{}, err
	}
	g.RegisterService(httpserver.ExportService(logsService, s.handleExport), s)
	listener, err := c.Server.NetAddr.Listen(ctx)
	if err != nil {
		return server{}, err
	}
	s.set.Logger.Info("ready for OTLP logs over gRPC", zap.Stringer("endpoint", listener.Addr()))
	s.life.Serve(g, listener)
	return server{address: listener.Addr(), shutdown: s.life.Shutdown}, nil
}

// maxMessageBytes is the largest message, as sent and decompressed.
func (s *grpcServer) maxMessageBytes() int64 {
	return min(httpserver.MaxMessageBytes(s.cfg.Server.MaxRecvMsgSizeMiB), s.maxBodyBytes)
}

// handleExport answers one request.
func (s *grpcServer) handleExport(stream grpc.ServerStream) error {
	ctx, cancel := s.life.Context(stream.Context())
	defer cancel()
	claim := s.path.Budget.Begin()
	defer claim.Release()
	data, err := s.life.Receive(ctx, stream, httpserver.Receiving{Claim: claim, MaxBytes: s.maxMessageBytes(), Timeout: s.cfg.ReadTimeout})
	if err != nil {
		return err
	}
	memory, err := pdatasize.Logs(data)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "read the message: %v", err)
	}
	if err := claim.Acquire(ctx, int64(memory)); err != nil {
		return httpserver.OTLPStatus(err).Err()
	}
	request := plogotlp.NewExportRequest()
	if err := request.UnmarshalProto(data); err != nil {
		return status.Errorf(codes.InvalidArgument, "the message is not an ExportLogsServiceRequest: %v", err)
	}
	response, err := export(ctx, s.path, request, claim)
	if err != nil {
		return err
	}
	answer, err := response.MarshalProto()
	if err != nil {
		return err
	}
	return stream.SendMsg(&answer)
}

// export delivers a request, for both forms of OTLP. Its error has a status.
func export(ctx context.Context, path *splunkdelivery.Path, request plogotlp.ExportRequest, claim *budget.Claim) (plogotlp.ExportResponse, error) {
	response := plogotlp.NewExportResponse()
	report, err := path.Deliver(ctx, request.Logs(), claim)
	if err != nil {
		return response, httpserver.OTLPStatus(err).Err()
	}
	if report.Rejected > 0 {
		response.PartialSuccess().SetRejectedLogRecords(int64(report.Rejected))
		response.PartialSuccess().SetErrorMessage(report.Message)
	}
	return response, nil
}
