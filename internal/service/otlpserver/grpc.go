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

func (p *Protocols) startGRPC(ctx context.Context, env httpserver.Env, signals []Signal) (Server, error) {
	server := &httpserver.GRPC{
		Config: &p.GRPC.Server, MaxBytes: p.MaxBytes, ReadTimeout: p.GRPC.ReadTimeout, Services: map[string]httpserver.Export{},
	}
	for _, signal := range signals {
		for _, name := range signal.Services {
			server.Services[name] = signal.exportGRPC
		}
	}
	if err := server.Start(ctx, env); err != nil {
		return nil, err
	}
	env.Telemetry.Logger.Info("ready for OTLP over gRPC", zap.Stringer("endpoint", server.Addr()))
	return server, nil
}

func (s *Signal) exportGRPC(ctx context.Context, data []byte, claim *budget.Claim) ([]byte, error) {
	response, err := s.Export(ctx, &Message{Data: data, Claim: claim, Header: func(key string) []string {
		return metadata.ValueFromIncomingContext(ctx, key)
	}})
	if err != nil {
		return nil, err
	}
	return response.MarshalProto()
}
