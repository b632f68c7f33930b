// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// GRPC starts and stops a gRPC server, as Server does an HTTP server. Call NewGRPC, call Context and Receive in the handlers of
// the gRPC server, and then call Serve.
type GRPC struct {
	options  Options
	server   *grpc.Server
	listener *limitedListener
	serving  sync.WaitGroup
	ends
}

// NewGRPC returns a GRPC, which has no server yet.
func NewGRPC(options Options) *GRPC { return &GRPC{options: options, ends: newEnds()} }

// Context returns the context of a call, which ends when the server stops.
func (g *GRPC) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.abort, cancel)
	return ctx, func() { stop(); cancel() }
}

// Stopping is closed when the server stops reading messages that have not arrived.
func (g *GRPC) Stopping() <-chan struct{} { return g.cut.Done() }

// Serve serves on listener until Shutdown. The server was made with LimitStreams and LimitCalls.
func (g *GRPC) Serve(server *grpc.Server, listener net.Listener) {
	g.server, g.listener = server, &limitedListener{Listener: listener}
	g.serving.Go(func() {
		if err := server.Serve(g.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) && g.options.OnFailure != nil {
			g.options.OnFailure(err)
		}
	})
}

// Shutdown accepts no new calls and waits for those under way, for at most the drain timeout or until ctx ends. After a
// quarter of it Stopping is closed. After three quarters the contexts of all calls end, so that handlers can answer; at
// the end connections are closed. Before Serve, Shutdown does nothing.
func (g *GRPC) Shutdown(ctx context.Context) error {
	defer g.endAbort()
	defer g.endCut()
	if g.server == nil {
		return nil
	}
	drain := g.options.DrainTimeout
	ctx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	defer time.AfterFunc(drain/4, g.endCut).Stop()
	defer time.AfterFunc(drain-drain/4, g.endAbort).Stop()
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
		err = fmt.Errorf("calls had not ended after %v and were cut off: %w", drain, ctx.Err())
		g.endAbort()
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
