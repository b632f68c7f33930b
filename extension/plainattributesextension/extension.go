// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package plainattributesextension is the extension `plain_attributes`: a middleware of gRPC clients, for backends that
// do not know references to strings. Exporters write attributes of resources and scopes as such references;
// plain.Rewrite puts the strings back into the message before it is sent.
package plainattributesextension

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/otelcol-profiles/otelcol-profiles/extension/plainattributesextension/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/plain"
)

// Config has no keys.
type Config struct{}

// NewFactory returns the factory of the extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(
		metadata.Type,
		func() component.Config { return &Config{} },
		func(context.Context, extension.Settings, component.Config) (extension.Extension, error) {
			return &plainAttributes{}, nil
		},
		metadata.ExtensionStability,
	)
}

type plainAttributes struct {
	component.StartFunc
	component.ShutdownFunc
}

var _ extensionmiddleware.GRPCClient = (*plainAttributes)(nil)

// GetGRPCClientOptions returns an interceptor that rewrites requests with profiles. Other requests have no references.
func (*plainAttributes) GetGRPCClientOptions(context.Context) ([]grpc.DialOption, error) {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(intercept)}, nil
}

func intercept(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	if strings.HasPrefix(method, "/opentelemetry.proto.collector.profiles.") {
		options = append(options, grpc.ForceCodecV2(codec{encoding.GetCodecV2(proto.Name)}))
	}
	return invoke(ctx, method, request, reply, conn, options...)
}

// codec writes what another codec does, with plain attributes.
type codec struct{ encoding.CodecV2 }

func (c codec) Marshal(message any) (mem.BufferSlice, error) {
	data, err := c.CodecV2.Marshal(message)
	if err != nil {
		return nil, err
	}
	defer data.Free()
	rewritten, err := plain.Rewrite(data.Materialize())
	if err != nil {
		return nil, fmt.Errorf("plain_attributes: %w", err)
	}
	return mem.BufferSlice{mem.SliceBuffer(rewritten)}, nil
}
