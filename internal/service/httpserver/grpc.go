// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shutdown"
)

// GRPC starts and stops a gRPC server, as Server does an HTTP server. Call NewGRPC, call Context and Receive in the handlers of
// the gRPC server, and then call Serve.
type GRPC struct {
	options  Options
	server   *grpc.Server
	listener *limitedListener
	serving  sync.WaitGroup
	// serveCtx is as in Server.
	serveCtx    context.Context
	cancelCalls context.CancelFunc
}

// NewGRPC returns a GRPC, which has no server yet.
func NewGRPC(options Options) *GRPC {
	g := &GRPC{options: options}
	g.serveCtx, g.cancelCalls = context.WithCancel(context.Background())
	return g
}

// Context returns the context of a call, which ends when the server stops.
func (g *GRPC) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.serveCtx, cancel)
	return ctx, func() { stop(); cancel() }
}

// Serve serves on listener until Shutdown. The server was made with LimitStreams and LimitCalls.
func (g *GRPC) Serve(server *grpc.Server, listener net.Listener) {
	g.server, g.listener = server, &limitedListener{Listener: listener}
	g.serving.Go(func() {
		if err := server.Serve(g.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) && g.options.OnFailure != nil {
			g.options.OnFailure(err)
		}
	})
}

// Shutdown accepts no new calls and waits for those under way, as Server.Shutdown does. Before Serve, it does nothing.
func (g *GRPC) Shutdown(ctx context.Context) error {
	defer g.cancelCalls()
	if g.server == nil {
		return nil
	}
	work, ctx, cancel := shutdown.Drain(ctx)
	defer cancel()
	defer context.AfterFunc(work, g.cancelCalls)()
	done := make(chan struct{})
	go func() {
		g.listener.closeAll(true)
		g.server.GracefulStop()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("calls had not ended and were cut off: %w", ctx.Err())
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
