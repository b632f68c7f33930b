// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-profiles/otelcol-profiles/internal/admission"
	"github.com/otelcol-profiles/otelcol-profiles/internal/splunkdelivery"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/splunkprofilingreceiver/internal/metadata"
)

// server is one way in which requests arrive.
type server interface {
	component.Component
	// name is the server's key in the configuration.
	name() string
}

// splunkReceiver starts and stops its servers together. The Collector makes one component for each kind of pipeline
// that a receiver is in; here they are one and the same.
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
	// leave returns the receiver's share of the admission budget.
	leave func()
}

// delivery is what the servers need to hand on requests.
type delivery struct {
	set  component.TelemetrySettings
	path *splunkdelivery.Path
	// drainTimeout bounds Shutdown.
	drainTimeout time.Duration
	// maxBodyBytes is the largest body, beside what the protocol's own configuration says.
	maxBodyBytes int64
}

var (
	sharedMu sync.Mutex
	// shared holds the receivers that are not shut down yet, by their configuration, which the Collector hands to
	// every component that it makes of it.
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

// Start starts every server, or none: where one fails, those before it are shut down again.
func (r *splunkReceiver) Start(ctx context.Context, host component.Host) error {
	r.starting.Do(func() { r.startErr = r.start(ctx, host) })
	return r.startErr
}

func (r *splunkReceiver) start(ctx context.Context, host component.Host) error {
	if r.profiles == nil {
		return errors.New("no profiles pipeline has this receiver, which has nowhere to hand profiles to")
	}
	_, r.leave = admission.Share(r.cfg.Translation.Limits.BytesInFlight())
	servers, err := r.servers()
	if err != nil {
		return err
	}
	for _, s := range servers {
		if err := s.Start(ctx, host); err != nil {
			return errors.Join(fmt.Errorf("start `%s`: %w", s.name(), err), r.stop(ctx))
		}
		r.started = append(r.started, s)
	}
	return nil
}

func (r *splunkReceiver) servers() (servers []server, err error) {
	var errs []error
	to := func(transport string) delivery {
		path, err := r.newPath(transport)
		errs = append(errs, err)
		return delivery{
			set: r.set.TelemetrySettings, path: path, drainTimeout: r.cfg.DrainTimeout,
			maxBodyBytes: int64(r.cfg.Translation.Limits.MaxProfileBytes),
		}
	}
	if c := r.cfg.Protocols.GRPC.Get(); c != nil {
		servers = append(servers, newGRPCServer(c, to("grpc")))
	}
	if c := r.cfg.Protocols.HTTP.Get(); c != nil {
		servers = append(servers, newOTLPServer(c, to("http")))
	}
	if c := r.cfg.Protocols.HEC.Get(); c != nil {
		servers = append(servers, newHECServer(c, to("hec")))
	}
	return servers, errors.Join(errs...)
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
			if err := s.Shutdown(ctx); err != nil {
				errs[i] = fmt.Errorf("shut down `%s`: %w", s.name(), err)
			}
		})
	}
	stopping.Wait()
	r.started = nil
	if r.leave != nil {
		r.leave()
		r.leave = nil
	}
	return errors.Join(errs...)
}
