// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// grpcPeer speaks OTLP/gRPC.
type grpcPeer struct {
	config    *configgrpc.ClientConfig
	settings  component.TelemetrySettings
	userAgent string
	retry     configretry.BackOffConfig
	// maxDelay bounds the delay that the peer may ask for.
	maxDelay time.Duration

	conn *grpc.ClientConn
}

func (p *grpcPeer) Start(ctx context.Context, host component.Host) (err error) {
	p.conn, err = p.config.ToClientConn(ctx, host.GetExtensions(), p.settings,
		configgrpc.WithGrpcDialOption(grpc.WithUserAgent(p.userAgent)),
		configgrpc.WithGrpcDialOption(grpc.WithConnectParams(p.connectParams())))
	return err
}

// connectParams makes gRPC connect again about as often as requests are retried. By default it waits for up to two
// minutes, during which retries would not reach a peer that is back.
func (p *grpcPeer) connectParams() grpc.ConnectParams {
	params := grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: minConnectTimeout}
	if p.retry.Enabled {
		params.Backoff.BaseDelay = min(params.Backoff.BaseDelay, max(p.retry.InitialInterval, minConnectDelay))
		params.Backoff.MaxDelay = min(params.Backoff.MaxDelay, max(p.retry.MaxInterval, params.Backoff.BaseDelay))
	}
	return params
}

const (
	minConnectDelay = 100 * time.Millisecond
	// minConnectTimeout is gRPC's own default.
	minConnectTimeout = 20 * time.Second
)

func (p *grpcPeer) Shutdown() {
	if p.conn != nil {
		_ = p.conn.Close() // fails only if it is closed
	}
}

func (p *grpcPeer) profilesRequest(pd pprofile.Profiles) (request, error) {
	return request{size: new(pprofile.ProtoMarshaler).ProfilesSize(pd), send: func(ctx context.Context) answer {
		response, err := pprofileotlp.NewGRPCClient(p.conn).Export(ctx, pprofileotlp.NewExportRequestFromProfiles(pd))
		if err != nil {
			return grpcAnswer(err, p.maxDelay)
		}
		return answer{rejected: response.PartialSuccess().RejectedProfiles(),
			message: response.PartialSuccess().ErrorMessage()}
	}}, nil
}

func (p *grpcPeer) logsRequest(ld plog.Logs, _ int) (request, error) {
	return request{size: new(plog.ProtoMarshaler).LogsSize(ld), send: func(ctx context.Context) answer {
		response, err := plogotlp.NewGRPCClient(p.conn).Export(ctx, plogotlp.NewExportRequestFromLogs(ld))
		if err != nil {
			return grpcAnswer(err, p.maxDelay)
		}
		return answer{rejected: response.PartialSuccess().RejectedLogRecords(),
			message: response.PartialSuccess().ErrorMessage()}
	}}, nil
}
