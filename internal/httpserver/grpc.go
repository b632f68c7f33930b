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
)

// GRPC is the life of a gRPC server, as Server is that of an HTTP server. Make one with NewGRPC, make the gRPC server
// with Interceptor, and then call Serve.
type GRPC struct {
	options  Options
	server   *grpc.Server
	serving  sync.WaitGroup
	abort    context.Context
	endAbort context.CancelFunc
}

// NewGRPC returns a life for a server that is made next.
func NewGRPC(options Options) *GRPC {
	g := &GRPC{options: options}
	g.abort, g.endAbort = context.WithCancel(context.Background())
	return g
}

// Interceptor ends the contexts of calls when the server stops. The server must have it.
func (g *GRPC) Interceptor(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.abort, cancel)()
	return handle(ctx, request)
}

// Serve serves on listener until Shutdown.
func (g *GRPC) Serve(server *grpc.Server, listener net.Listener) {
	g.server = server
	g.serving.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) && g.options.OnFailure != nil {
			g.options.OnFailure(err)
		}
	})
}

// Shutdown accepts no new calls and waits for those under way, for at most the drain timeout or until ctx ends. After
// three quarters of it the contexts of all calls end, so that handlers can answer; at the end connections are closed.
// Before Serve it does nothing.
func (g *GRPC) Shutdown(ctx context.Context) error {
	defer g.endAbort()
	if g.server == nil {
		return nil
	}
	drain := g.options.DrainTimeout
	ctx, cancel := context.WithTimeout(ctx, drain)
	defer cancel()
	defer time.AfterFunc(drain-drain/4, g.endAbort).Stop()
	done := make(chan struct{})
	go func() {
		g.server.GracefulStop()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("calls had not ended after %v and were cut off", drain)
		g.endAbort()
		g.server.Stop()
	}
	g.serving.Wait()
	return err
}
