// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-profiles/otelcol-profiles/internal/admission"
)

// source is one way in which payloads arrive.
type source interface {
	component.Component
	// name is the source's key in the configuration, and its value in metrics.
	name() string
}

// pprofReceiver starts and stops its sources together.
type pprofReceiver struct {
	sources []source
	// started holds the sources to shut down.
	started []source
	cfg     *Config
	// leave gives the receiver's share of the admission budget back.
	leave   func()
	metrics *metrics
}

func newReceiver(set receiver.Settings, cfg *Config, next xconsumer.Profiles) (*pprofReceiver, error) {
	metrics, err := newMetrics(set.MeterProvider)
	if err != nil {
		return nil, err
	}
	ingest := func(source, transport string) (*ingester, error) {
		return newIngester(ingesterSettings{
			set: set, cfg: cfg, budget: admission.Process(), next: next, metrics: metrics, source: source, transport: transport,
		})
	}

	r := &pprofReceiver{cfg: cfg, metrics: metrics}
	var errs []error
	add := func(s source, err error) {
		r.sources, errs = append(r.sources, s), append(errs, err)
	}
	if c := cfg.Server.Get(); c != nil {
		in, err := ingest(sourceServer, "http")
		add(newServer(c, set.TelemetrySettings, in), err)
	}
	if c := cfg.Remote.Get(); c != nil {
		in, err := ingest(sourceRemote, "http")
		add(newRemote(c, set.TelemetrySettings, in), err)
	}
	if c := cfg.Scrape.Get(); c != nil {
		in, err := ingest(sourceScrape, "http")
		add(newScraper(c, set, in), err)
	}
	if c := cfg.File.Get(); c != nil {
		in, err := ingest(sourceFile, "file")
		add(newFileReader(c, set, in), err)
	}
	if c := cfg.Self.Get(); c != nil {
		in, err := ingest(sourceSelf, "runtime")
		add(newSelf(c, set, in), err)
	}
	return r, errors.Join(errs...)
}

// Start starts every source, or none: if one fails, those before it are shut down again.
func (r *pprofReceiver) Start(ctx context.Context, host component.Host) error {
	var budget *admission.Budget
	budget, r.leave = admission.Share(r.cfg.Limits.bytesInFlight())
	if err := r.metrics.observe(budget); err != nil {
		return errors.Join(err, r.Shutdown(ctx))
	}
	for _, s := range r.sources {
		if err := s.Start(ctx, host); err != nil {
			return errors.Join(fmt.Errorf("start `%s`: %w", s.name(), err), r.Shutdown(ctx))
		}
		r.started = append(r.started, s)
	}
	return nil
}

// Shutdown stops all sources at once, within the drain timeout or until ctx ends. What they have in hand reaches the
// pipeline, unless the pipeline needs longer than that.
func (r *pprofReceiver) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.DrainTimeout)
	defer cancel()
	errs := make([]error, len(r.started)+1)
	var stopping sync.WaitGroup
	for i, s := range r.started {
		stopping.Go(func() {
			if err := s.Shutdown(ctx); err != nil {
				errs[i] = fmt.Errorf("shut down `%s`: %w", s.name(), err)
			}
		})
	}
	stopping.Wait()
	r.started = nil
	if r.leave != nil {
		errs[len(errs)-1] = r.metrics.close()
		r.leave()
		r.leave = nil
	}
	return errors.Join(errs...)
}
