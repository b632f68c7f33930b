// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/otlpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunk/delivery"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/splunkprofilingreceiver/internal/metadata"
)

// splunkReceiver starts and stops its servers together.
type splunkReceiver struct {
	cfg      *Config
	set      receiver.Settings
	metrics  *delivery.Metrics
	profiles xconsumer.Profiles
	logs     consumer.Logs

	servers    otlpserver.Servers
	stopBudget func() error
}

func newReceiver(set receiver.Settings, cfg *Config) (*splunkReceiver, error) {
	b, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	metrics := &delivery.Metrics{
		Records:  b.ReceiverSplunkProfilingRecords,
		Profiles: b.ReceiverSplunkProfilingProfiles,
		Samples:  b.ReceiverSplunkProfilingSamples,
		Rejected: b.ReceiverSplunkProfilingRejectedRecords,
		Dropped:  b.ReceiverSplunkProfilingDroppedSamples,
		Repaired: b.ReceiverSplunkProfilingRepaired,
	}
	return &splunkReceiver{cfg: cfg, set: set, metrics: metrics}, nil
}

// Start starts every server, or none: if one fails, those before it are shut down again.
func (r *splunkReceiver) Start(ctx context.Context, host component.Host) error {
	if r.profiles == nil {
		return errors.New("the receiver is in no profiles pipeline, so it cannot deliver profiles")
	}
	env := httpserver.Env{Host: host, Telemetry: r.set.TelemetrySettings}
	largest := int64(r.cfg.Translation.Limits.MaxProfileBytes)
	var err error
	if r.stopBudget, err = budget.Watch(r.set.TelemetrySettings); err != nil {
		return err
	}
	err = r.servers.StartOTLP(ctx, env, otlpserver.Protocols{
		GRPC: r.cfg.Protocols.GRPC.Get(), HTTP: r.cfg.Protocols.HTTP.Get(), MaxBytes: largest, Signals: r.signals,
	})
	if c := r.cfg.Protocols.HEC.Get(); c != nil && err == nil {
		err = r.servers.Start("hec", func() (otlpserver.Server, error) {
			path, err := r.newPath("hec")
			if err != nil {
				return nil, err
			}
			h := &hecServer{path: path,
				http: httpserver.HTTP{Config: &c.Server, MaxBodyBytes: largest, AnswerError: answerHECError}}
			return h.start(ctx, env)
		})
	}
	if err != nil {
		return errors.Join(err, r.Shutdown(ctx))
	}
	return nil
}

// signals are OTLP logs, on a path of their own.
func (r *splunkReceiver) signals(protocol string) ([]otlpserver.Signal, error) {
	path, err := r.newPath(protocol)
	return []otlpserver.Signal{otlpserver.Logs(func(ctx context.Context, m *otlpserver.Message, ld plog.Logs) (int, string,
		error) {
		report, err := path.Deliver(ctx, ld, m.Reservation)
		return report.Rejected + report.Incomplete, report.Message, err
	})}, err
}

// Shutdown stops every server. Requests under way are answered first, unless ctx ends.
func (r *splunkReceiver) Shutdown(ctx context.Context) error {
	if r.stopBudget == nil {
		return nil
	}
	return errors.Join(r.servers.Shutdown(ctx), r.stopBudget())
}

// newPath returns the path from one server to the pipelines, with the Collector's standard metrics of receivers.
func (r *splunkReceiver) newPath(transport string) (*delivery.Path, error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: r.set.ID, Transport: transport, ReceiverCreateSettings: r.set,
	})
	if err != nil {
		return nil, err
	}
	const format = "splunk"
	path := &delivery.Path{Options: r.cfg.Translation.Options(), Metrics: r.metrics, Budget: budget.Process()}
	path.Profiles = func(ctx context.Context, pd pprofile.Profiles) error {
		ctx = obsreport.StartProfilesOp(ctx)
		samples := pd.SampleCount()
		err := r.profiles.ConsumeProfiles(ctx, pd)
		obsreport.EndProfilesOp(ctx, format, samples, err)
		return err
	}
	if r.logs != nil {
		path.Logs = func(ctx context.Context, ld plog.Logs) error {
			ctx = obsreport.StartLogsOp(ctx)
			records := ld.LogRecordCount()
			err := r.logs.ConsumeLogs(ctx, ld)
			obsreport.EndLogsOp(ctx, format, records, err)
			return err
		}
	}
	return path, nil
}
