// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestologsexporter

import (
	"context"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// grpcPeer speaks OTLP/gRPC.
type grpcPeer struct {
	config    *configgrpc.ClientConfig
	settings  component.TelemetrySettings
	userAgent string

	conn     *grpc.ClientConn
	profiles pprofileotlp.GRPCClient
	logs     plogotlp.GRPCClient
}

func (p *grpcPeer) start(ctx context.Context, host component.Host) (err error) {
	p.conn, err = p.config.ToClientConn(ctx, host.GetExtensions(), p.settings,
		configgrpc.WithGrpcDialOption(grpc.WithUserAgent(p.userAgent)))
	if err != nil {
		return err
	}
	p.profiles, p.logs = pprofileotlp.NewGRPCClient(p.conn), plogotlp.NewGRPCClient(p.conn)
	return nil
}

func (p *grpcPeer) shutdown() error {
	if p.conn == nil {
		return nil
	}
	return p.conn.Close()
}

func (p *grpcPeer) sendProfiles(ctx context.Context, pd pprofile.Profiles) (partial, error) {
	answer, err := p.profiles.Export(ctx, pprofileotlp.NewExportRequestFromProfiles(pd), grpc.WaitForReady(p.config.WaitForReady))
	if err != nil {
		if s := status.Convert(err); isNoProfiles(s.Code(), s.Message()) {
			return partial{}, &noProfilesError{err}
		}
		return partial{}, grpcError(err)
	}
	return partial{answer.PartialSuccess().RejectedProfiles(), answer.PartialSuccess().ErrorMessage()}, nil
}

func (p *grpcPeer) sendLogs(ctx context.Context, ld plog.Logs) (partial, error) {
	answer, err := p.logs.Export(ctx, plogotlp.NewExportRequestFromLogs(ld), grpc.WaitForReady(p.config.WaitForReady))
	if err != nil {
		return partial{}, grpcError(err)
	}
	return partial{answer.PartialSuccess().RejectedLogRecords(), answer.PartialSuccess().ErrorMessage()}, nil
}

// isNoProfiles reports whether an answer to profiles means that a peer has no service for them, or not in this version.
// The latter has no code of its own: a peer says that it cannot read the message, or names the version.
func isNoProfiles(code codes.Code, message string) bool {
	switch code {
	case codes.Unimplemented:
		return true
	case codes.InvalidArgument, codes.FailedPrecondition, codes.Internal:
		message = strings.ToLower(message)
		for _, sign := range []string{"version", "unmarshal", "wiretype", "wire type", "not supported", "unsupported"} {
			if strings.Contains(message, sign) {
				return true
			}
		}
	}
	return false
}

// grpcError makes an error permanent that trying again would not help, and takes the delay that a peer asks for (OTLP
// specification, OTLP/gRPC failures and throttling).
func grpcError(err error) error {
	s := status.Convert(err)
	var retry *errdetails.RetryInfo
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			retry = info
		}
	}
	switch s.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
	case codes.ResourceExhausted:
		// A peer that says when to come back recovers; else a message is too large for it, now and later.
		if retry == nil {
			return consumererror.NewPermanent(err)
		}
	default:
		return consumererror.NewPermanent(err)
	}
	if delay := retry.GetRetryDelay().AsDuration(); delay > 0 {
		return exporterhelper.NewThrottleRetry(err, delay)
	}
	return err
}
