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

	conn     *grpc.ClientConn
	profiles pprofileotlp.GRPCClient
	logs     plogotlp.GRPCClient
}

func (p *grpcPeer) start(ctx context.Context, host component.Host) (err error) {
	p.conn, err = p.config.ToClientConn(ctx, host.GetExtensions(), p.settings,
		configgrpc.WithGrpcDialOption(grpc.WithUserAgent(p.userAgent)),
		configgrpc.WithGrpcDialOption(grpc.WithConnectParams(p.connectParams())))
	if err != nil {
		return err
	}
	p.profiles, p.logs = pprofileotlp.NewGRPCClient(p.conn), plogotlp.NewGRPCClient(p.conn)
	return nil
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

func (p *grpcPeer) shutdown() error {
	if p.conn == nil {
		return nil
	}
	return p.conn.Close()
}

func (p *grpcPeer) sendProfiles(ctx context.Context, pd pprofile.Profiles, limit int) answer {
	size := new(pprofile.ProtoMarshaler).ProfilesSize(pd)
	if limit > 0 && size > limit {
		return aboveLimit(size)
	}
	response, err := p.profiles.Export(ctx, pprofileotlp.NewExportRequestFromProfiles(pd), grpc.WaitForReady(p.config.WaitForReady))
	if err != nil {
		return p.refused(err, size)
	}
	return answer{size: size, rejected: response.PartialSuccess().RejectedProfiles(), message: response.PartialSuccess().ErrorMessage()}
}

func (p *grpcPeer) sendLogs(ctx context.Context, ld plog.Logs, limit int) answer {
	size := new(plog.ProtoMarshaler).LogsSize(ld)
	if limit > 0 && size > limit {
		return aboveLimit(size)
	}
	response, err := p.logs.Export(ctx, plogotlp.NewExportRequestFromLogs(ld), grpc.WaitForReady(p.config.WaitForReady))
	if err != nil {
		return p.refused(err, size)
	}
	return answer{size: size, rejected: response.PartialSuccess().RejectedLogRecords(), message: response.PartialSuccess().ErrorMessage()}
}

func (p *grpcPeer) refused(err error, size int) answer {
	sent := grpcAnswer(err, p.maxDelay)
	sent.size = size
	return sent
}
