// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlpserver

import (
	"context"

	"go.uber.org/zap"
	"google.golang.org/grpc/metadata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
)

// GRPC is a gRPC server.
type GRPC struct {
	Config *GRPCConfig
	// MaxBytes bounds messages, as sent and decompressed, in addition to Config; 0 adds no bound.
	MaxBytes int64
	Signals  []Signal
}

// Start binds the endpoint and begins to serve.
func (g *GRPC) Start(ctx context.Context, env httpserver.Env) (Server, error) {
	server := httpserver.GRPC{
		Config: &g.Config.Server, MaxBytes: g.MaxBytes, ReadTimeout: g.Config.ReadTimeout, Services: map[string]httpserver.Export{},
	}
	for _, signal := range g.Signals {
		for _, name := range signal.Services {
			server.Services[name] = signal.exportGRPC
		}
	}
	address, err := server.Start(ctx, env)
	if err != nil {
		return Server{}, err
	}
	env.Telemetry.Logger.Info("ready for OTLP over gRPC", zap.Stringer("endpoint", address))
	return Server{Address: address, Shutdown: server.Shutdown}, nil
}

// exportGRPC handles one request.
func (s *Signal) exportGRPC(ctx context.Context, data []byte, claim *budget.Claim) ([]byte, error) {
	response, err := s.Export(ctx, &Message{Data: data, Claim: claim, Header: func(key string) []string {
		return metadata.ValueFromIncomingContext(ctx, key)
	}})
	if err != nil {
		return nil, err
	}
	return response.MarshalProto()
}
