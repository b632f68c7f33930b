// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/admission"
	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pdatasize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunkdelivery"
)

// logsService is OTLP's service for logs. Its method is registered as one of streams: gRPC reads the message of any
// other before the handler can ask for room for it, and decodes it before the handler can check it.
var logsService = grpc.ServiceDesc{
	ServiceName: "opentelemetry.proto.collector.logs.v1.LogsService",
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName:    "Export",
		Handler:       func(s any, stream grpc.ServerStream) error { return s.(*grpcServer).handleExport(stream) },
		ServerStreams: true, ClientStreams: true,
	}},
	Metadata: "opentelemetry/proto/collector/logs/v1/logs_service.proto",
}

// rawMessage is a message as it is sent.
type rawMessage struct{ data []byte }

// rawCodec leaves encoding and decoding to the handler.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(*rawMessage).data)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	v.(*rawMessage).data = data.Materialize()
	return nil
}

// grpcServer receives OTLP logs over gRPC.
type grpcServer struct {
	delivery
	cfg *GRPCConfig

	grpc *grpc.Server
	// address is where the server listens once started.
	address net.Addr
	serving sync.WaitGroup
	// cut ends when messages are not read any longer, and abort when no request may go on.
	cut, abort       context.Context
	endCut, endAbort context.CancelFunc
}

func newGRPCServer(cfg *GRPCConfig, d delivery) *grpcServer {
	s := &grpcServer{cfg: cfg, delivery: d}
	s.cut, s.endCut = context.WithCancel(context.Background())
	s.abort, s.endAbort = context.WithCancel(context.Background())
	return s
}

func (*grpcServer) name() string { return "grpc" }

// maxMessageBytes is the largest message, as sent and decompressed.
func (s *grpcServer) maxMessageBytes() int64 {
	const defaultMiB = 4 // gRPC's own
	mib := s.cfg.Server.MaxRecvMsgSizeMiB
	if mib == 0 {
		mib = defaultMiB
	}
	return min(int64(mib)<<20, s.maxBodyBytes, math.MaxInt32)
}

// Start binds the endpoint and begins to serve.
func (s *grpcServer) Start(ctx context.Context, host component.Host) error {
	var err error
	s.grpc, err = s.cfg.Server.ToServer(ctx, host.GetExtensions(), s.set,
		configgrpc.WithGrpcServerOption(grpc.ForceServerCodecV2(rawCodec{})),
		configgrpc.WithGrpcServerOption(grpc.MaxRecvMsgSize(int(s.maxMessageBytes()))),
	)
	if err != nil {
		return err
	}
	s.grpc.RegisterService(&logsService, s)
	listener, err := s.cfg.Server.NetAddr.Listen(ctx)
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

// Shutdown waits until the requests under way are answered, for the drain timeout at most: messages that have not arrived
// after a quarter of it are refused, and after three quarters the contexts of requests end. Then connections are closed.
func (s *grpcServer) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.drainTimeout)
	defer cancel()
	defer time.AfterFunc(s.drainTimeout/4, s.endCut).Stop()
	defer time.AfterFunc(s.drainTimeout-s.drainTimeout/4, s.endAbort).Stop()
	defer s.endCut()
	defer s.endAbort()
	done := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.grpc.Stop() // it does not wait for handlers
		s.serving.Wait()
		return fmt.Errorf("requests had not ended after %v and were cut off: %w", s.drainTimeout, ctx.Err())
	}
	s.serving.Wait()
	return nil
}

// handleExport answers one request.
func (s *grpcServer) handleExport(stream grpc.ServerStream) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.abort, cancel)()
	claim := s.path.Budget.Begin()
	defer claim.Release()
	data, err := s.receive(ctx, stream, claim)
	if err != nil {
		return err
	}
	memory, err := pdatasize.Logs(data)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "the message is not read: %v", err)
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
	return stream.SendMsg(&rawMessage{data: answer})
}

// Reasons to give up a message that is arriving.
var (
	errSlow     = fmt.Errorf("%w, and the message arrives slowly", admission.ErrBusy)
	errStopping = errors.New("the server stops")
)

// receive reads the message of a request. Nobody knows its size before it has arrived, so that the claim holds the
// largest one meanwhile. Its error has a status.
func (s *grpcServer) receive(ctx context.Context, stream grpc.ServerStream, claim *admission.Claim) ([]byte, error) {
	refused, refuse := context.WithCancel(ctx)
	defer refuse()
	claim.OnRefusal(refuse)
	largest := s.maxMessageBytes()
	if err := claim.Acquire(ctx, largest); err != nil {
		return nil, httpserver.OTLPStatus(err).Err()
	}
	message, received := &rawMessage{}, make(chan error, 1)
	go func() { received <- stream.RecvMsg(message) }() // it ends with the stream, at the latest
	var late <-chan time.Time
	if timeout := s.cfg.ReadTimeout; timeout > 0 {
		late = time.After(timeout)
	}
	select {
	case err := <-received:
		if err != nil {
			return nil, err
		}
	case <-refused.Done():
		return nil, httpserver.OTLPStatus(errSlow).Err()
	case <-s.cut.Done():
		return nil, httpserver.OTLPStatus(errStopping).Err()
	case <-late:
		return nil, status.Errorf(codes.DeadlineExceeded, "the message did not arrive within %v", s.cfg.ReadTimeout)
	}
	claim.Complete()
	claim.Return(largest - int64(len(message.data)))
	return message.data, nil
}

// export is what both forms of OTLP have in common. Its error has a status.
func export(ctx context.Context, path *splunkdelivery.Path, request plogotlp.ExportRequest, claim *admission.Claim) (plogotlp.ExportResponse, error) {
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
