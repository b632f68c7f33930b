// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"errors"
	"net"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/otelcol-profiles/otelcol-profiles/internal/splunkdelivery"
)

// grpcServer takes OTLP logs over gRPC.
type grpcServer struct {
	plogotlp.UnimplementedGRPCServer
	cfg  *configgrpc.ServerConfig
	set  component.TelemetrySettings
	path *splunkdelivery.Path

	grpc *grpc.Server
	// address is where the server listens once started.
	address net.Addr
	serving sync.WaitGroup
}

func (*grpcServer) name() string { return "grpc" }

// Start binds the endpoint and begins to serve.
func (s *grpcServer) Start(ctx context.Context, host component.Host) error {
	var err error
	if s.grpc, err = s.cfg.ToServer(ctx, host.GetExtensions(), s.set); err != nil {
		return err
	}
	plogotlp.RegisterGRPCServer(s.grpc, s)
	listener, err := s.cfg.NetAddr.Listen(ctx)
	if err != nil {
		return err
	}
	s.address = listener.Addr()
	s.set.Logger.Info("ready for OTLP logs over gRPC", zap.Stringer("endpoint", s.address))
	s.serving.Go(func() {
		if err := s.grpc.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

// Shutdown waits until the requests under way are answered. When ctx ends first, they are cut off.
func (s *grpcServer) Shutdown(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
		s.grpc.Stop()
		<-done
	}
	s.serving.Wait()
	return err
}

// Export takes one request.
func (s *grpcServer) Export(ctx context.Context, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	return export(ctx, s.path, request)
}

// export is what both forms of OTLP have in common. Its error has a status.
func export(ctx context.Context, path *splunkdelivery.Path, request plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	response := plogotlp.NewExportResponse()
	report, err := path.Deliver(ctx, request.Logs())
	if err != nil {
		return response, statusOf(err).Err()
	}
	if report.Rejected > 0 {
		response.PartialSuccess().SetRejectedLogRecords(int64(report.Rejected))
		response.PartialSuccess().SetErrorMessage(report.Message)
	}
	return response, nil
}
