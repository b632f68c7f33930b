// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/config/configgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/await"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpstatus"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shutdown"
)

// GRPC is a gRPC server as configgrpc configures it. It receives messages on the budget, and stops as Server does.
type GRPC struct {
	Config *configgrpc.ServerConfig
	// MaxBytes bounds messages, as sent and decompressed, in addition to Config; 0 adds no bound.
	MaxBytes int64
	// ReadTimeout bounds how long a message may take to arrive; 0 means no limit.
	ReadTimeout time.Duration
	// Services handle the calls of their only method, Export, by the name of the service.
	Services map[string]Export
	// Elsewhere is what the answer to calls of other services says, after their name.
	Elsewhere string

	server   *grpc.Server
	listener *limitedListener
	serving  sync.WaitGroup
	// serveCtx is as in Server.
	serveCtx    context.Context
	cancelCalls context.CancelFunc
}

// Export handles one message, whose size the reservation holds, and returns the answer. The error is that of the
// pipeline.
type Export func(ctx context.Context, message []byte, reservation *budget.Reservation) (answer []byte, err error)

// Start binds the endpoint and begins to serve.
func (g *GRPC) Start(ctx context.Context, env Env) error {
	const (
		defaultMiB       = 4 // gRPC's own
		streamWindow     = 64 << 10
		connectionWindow = 1 << 20
		readBuffer       = 8 << 10
	)
	maxBytes := int64(min(cmp.Or(g.Config.MaxRecvMsgSizeMiB, defaultMiB), math.MaxInt32>>20)) << 20
	if g.MaxBytes == 0 || g.MaxBytes > maxBytes {
		g.MaxBytes = maxBytes
	}
	server, err := g.Config.ToServer(ctx, env.Host.GetExtensions(), env.Telemetry,
		configgrpc.WithGrpcServerOption(grpc.ForceServerCodecV2(RawCodec{})),
		configgrpc.WithGrpcServerOption(grpc.MaxConcurrentStreams(cmp.Or(g.Config.MaxConcurrentStreams, MaxStreams))),
		configgrpc.WithGrpcServerOption(noteCalls(outcomes{newCounter(env.Telemetry, failedRequests)})),
		configgrpc.WithGrpcServerOption(limitCalls(newRefusals(env.Telemetry, refusedRequests))),
		configgrpc.WithGrpcServerOption(grpc.UnknownServiceHandler(g.refuse)),
		// Most of an idle connection's memory. A larger item, such as a frame of a message, is read past it.
		configgrpc.WithGrpcServerOption(grpc.ReadBufferSize(cmp.Or(g.Config.ReadBufferSize, readBuffer))),
		// What has arrived of a message and was not asked for yet is not counted: gRPC's least.
		configgrpc.WithGrpcServerOption(grpc.InitialWindowSize(streamWindow)),
		configgrpc.WithGrpcServerOption(grpc.InitialConnWindowSize(connectionWindow)))
	if err != nil {
		return err
	}
	for name, export := range g.Services {
		server.RegisterService(exportService(name, func(stream grpc.ServerStream) error { return g.handle(stream, export) }),
			g)
	}
	removeDeadSocket(ctx, &g.Config.NetAddr)
	listener, err := g.Config.NetAddr.Listen(ctx)
	if err != nil {
		return err
	}
	refused := newRefusals(env.Telemetry, refusedConnections)
	g.serve(server, &limitedListener{listener, newConnections(refused)}, env.Fail)
	return nil
}

// refuse answers a call of a service that is not here. Unlike the answer of gRPC itself, this one is noted and counted.
func (g *GRPC) refuse(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if _, ok := g.Services[service]; ok {
		return status.Errorf(codes.Unimplemented, "unknown method %s for service %s", name, service)
	}
	return status.Errorf(codes.Unimplemented, "unknown service %s%s", service, g.Elsewhere)
}

// exportService returns a service whose only method is registered as a stream: for other methods, gRPC reads the
// message before the handler can reserve memory for it.
func exportService(name string, handle func(grpc.ServerStream) error) *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: name, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName:    "Export",
			Handler:       func(_ any, stream grpc.ServerStream) error { return handle(stream) },
			ServerStreams: true, ClientStreams: true,
		}},
	}
}

func (g *GRPC) serve(server *grpc.Server, listener *limitedListener, onFailure func(error)) {
	g.server, g.listener = server, listener
	g.serveCtx, g.cancelCalls = context.WithCancel(context.Background())
	g.serving.Go(func() {
		if err := server.Serve(g.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			onFailure(err)
		}
	})
}

// handle answers one call. Its context ends when the server stops.
func (g *GRPC) handle(stream grpc.ServerStream, export Export) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(g.serveCtx, cancel)()
	reservation := budget.Process().Begin()
	defer reservation.Release()
	message, err := g.receive(ctx, stream, reservation)
	if err != nil {
		return err
	}
	answered, err := export(ctx, message, reservation)
	if err != nil {
		return otlpstatus.Of(err).Err()
	}
	return stream.SendMsg(&answered)
}

// receive reads the message of a call. Then the reservation holds its size. The error has a status.
func (g *GRPC) receive(ctx context.Context, stream grpc.ServerStream, reservation *budget.Reservation) ([]byte, error) {
	wire, ok := grpc.ServerTransportStreamFromContext(stream.Context()).(transportStream)
	if !ok {
		return nil, status.Error(codes.Internal, "this version of gRPC does not read messages in parts")
	}
	arriving := &arrivingMessage{stream: wire, stopping: g.serveCtx.Done()}
	if g.ReadTimeout > 0 {
		late := time.NewTimer(g.ReadTimeout)
		defer late.Stop()
		arriving.late = late.C
	}
	message, err := arriving.receive(ctx, reservation, g.MaxBytes)
	var tooLarge *budget.TooLargeError
	switch {
	case err == nil:
		return message, nil
	case errors.Is(err, ErrLate):
		return nil, status.Errorf(codes.DeadlineExceeded, "the message did not arrive within %v (`read_timeout`)",
			g.ReadTimeout)
	case errors.As(err, &tooLarge):
		if tooLarge.Need == 0 {
			err = fmt.Errorf("received a message larger than max: %w", err)
		}
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, budget.ErrBusy), errors.Is(err, ErrStopping), ctx.Err() != nil:
		return nil, otlpstatus.Of(err).Err()
	case errors.Is(err, io.EOF):
		return nil, status.Error(codes.InvalidArgument, "the call has no message")
	}
	if _, ok := status.FromError(err); ok {
		return nil, err
	}
	return nil, status.Error(codes.InvalidArgument, err.Error())
}

// Addr is where the server listens.
func (g *GRPC) Addr() net.Addr { return g.listener.Addr() }

// Shutdown accepts no new calls and waits for those under way, as Server.Shutdown does.
func (g *GRPC) Shutdown(ctx context.Context) error {
	defer g.cancelCalls()
	work, ctx, cancel := shutdown.Drain(ctx)
	defer cancel()
	defer context.AfterFunc(work, g.cancelCalls)()
	err := await.Return(ctx, func() {
		g.listener.closeAll(true)
		g.server.GracefulStop()
	})
	if err != nil {
		err = fmt.Errorf("calls had not ended and were cut off: %w", err)
		g.cancelCalls()
		g.listener.closeAll(false)
		g.server.Stop() // it does not wait for handlers
	}
	g.serving.Wait()
	return err
}

// RawCodec leaves messages encoded: each is a *[]byte. A handler can check one before it decodes it.
type RawCodec struct{}

// Name returns the name of the codec that RawCodec replaces.
func (RawCodec) Name() string { return "proto" }

// Marshal returns the bytes of a message.
func (RawCodec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(*[]byte)
	if !ok {
		return nil, status.Errorf(codes.Internal, "unexpected message %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*message)}, nil
}

// Unmarshal sets a message to its bytes.
func (RawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	message, ok := v.(*[]byte)
	if !ok {
		return status.Errorf(codes.Internal, "unexpected message %T", v)
	}
	*message = data.Materialize()
	return nil
}
