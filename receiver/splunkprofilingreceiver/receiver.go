// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunkdelivery"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/splunkprofilingreceiver/internal/metadata"
)

// server is a running server.
type server struct {
	// protocol is its key in the configuration.
	protocol string
	address  net.Addr
	shutdown func(context.Context) error
}

// splunkReceiver starts and stops its servers together. The Collector makes one component for each kind of pipeline
// that a receiver is in; here they are the same component.
type splunkReceiver struct {
	cfg      *Config
	set      receiver.Settings
	metrics  *splunkdelivery.Metrics
	profiles xconsumer.Profiles
	logs     consumer.Logs

	starting, stopping sync.Once
	startErr           error
	// started holds the servers to shut down.
	started []server
}

// delivery is what the servers need to pass on requests.
type delivery struct {
	set     component.TelemetrySettings
	path    *splunkdelivery.Path
	options httpserver.Options
	// maxBodyBytes bounds bodies, in addition to the protocol's own configuration.
	maxBodyBytes int64
}

var (
	sharedMu sync.Mutex
	// shared has the receivers that are not shut down yet, by their configuration. The Collector passes the same one for
	// every kind of pipeline.
	shared = map[*Config]*splunkReceiver{}
)

func sharedReceiver(set receiver.Settings, cfg *Config) (*splunkReceiver, error) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if r, ok := shared[cfg]; ok {
		return r, nil
	}
	b, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	metrics := &splunkdelivery.Metrics{
		Records:  b.ReceiverSplunkProfilingRecords,
		Profiles: b.ReceiverSplunkProfilingProfiles,
		Samples:  b.ReceiverSplunkProfilingSamples,
		Rejected: b.ReceiverSplunkProfilingRejectedRecords,
		Dropped:  b.ReceiverSplunkProfilingDroppedSamples,
		Repaired: b.ReceiverSplunkProfilingRepaired,
	}
	r := &splunkReceiver{cfg: cfg, set: set, metrics: metrics}
	shared[cfg] = r
	return r, nil
}

// Start starts every server, or none: if one fails, those before it are shut down again.
func (r *splunkReceiver) Start(ctx context.Context, host component.Host) error {
	r.starting.Do(func() { r.startErr = r.start(ctx, host) })
	return r.startErr
}

func (r *splunkReceiver) start(ctx context.Context, host component.Host) error {
	if r.profiles == nil {
		return errors.New("the receiver is in no profiles pipeline, so it cannot deliver profiles")
	}
	var err error
	if c := r.cfg.Protocols.GRPC.Get(); c != nil {
		err = r.startServer(ctx, host, "grpc", c.start)
	}
	if c := r.cfg.Protocols.HTTP.Get(); c != nil && err == nil {
		err = r.startServer(ctx, host, "http", c.startOTLP)
	}
	if c := r.cfg.Protocols.HEC.Get(); c != nil && err == nil {
		err = r.startServer(ctx, host, "hec", c.startHEC)
	}
	if err != nil {
		return errors.Join(err, r.stop(ctx))
	}
	return nil
}

type startFunc func(context.Context, component.Host, delivery) (server, error)

func (r *splunkReceiver) startServer(ctx context.Context, host component.Host, protocol string, start startFunc) error {
	path, err := r.newPath(protocol)
	if err != nil {
		return err
	}
	s, err := start(ctx, host, delivery{
		set: r.set.TelemetrySettings, path: path, maxBodyBytes: int64(r.cfg.Translation.Limits.MaxProfileBytes),
		options: httpserver.Options{
			DrainTimeout: r.cfg.DrainTimeout,
			OnFailure:    func(err error) { componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err)) },
		},
	})
	if err != nil {
		return fmt.Errorf("start `%s`: %w", protocol, err)
	}
	s.protocol = protocol
	r.started = append(r.started, s)
	return nil
}

// Shutdown stops every server. Requests under way are answered first, unless ctx ends.
func (r *splunkReceiver) Shutdown(ctx context.Context) (err error) {
	r.stopping.Do(func() {
		sharedMu.Lock()
		delete(shared, r.cfg)
		sharedMu.Unlock()
		err = r.stop(ctx)
	})
	return err
}

func (r *splunkReceiver) stop(ctx context.Context) error {
	errs := make([]error, len(r.started))
	var stopping sync.WaitGroup
	for i, s := range r.started { // together: the drain timeout is for all
		stopping.Go(func() {
			if err := s.shutdown(ctx); err != nil {
				errs[i] = fmt.Errorf("shut down `%s`: %w", s.protocol, err)
			}
		})
	}
	stopping.Wait()
	r.started = nil
	return errors.Join(errs...)
}

// newPath returns the path from one server to the pipelines, with the Collector's standard metrics of receivers.
func (r *splunkReceiver) newPath(transport string) (*splunkdelivery.Path, error) {
	obsreport, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: r.set.ID, Transport: transport, ReceiverCreateSettings: r.set,
	})
	if err != nil {
		return nil, err
	}
	const format = "splunk"
	path := &splunkdelivery.Path{Options: r.cfg.Translation.Options(), Metrics: r.metrics, Budget: budget.Process()}
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
