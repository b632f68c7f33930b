// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/shutdown"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/file"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/push"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/remote"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/scrape"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/self"
)

// source is one way in which payloads arrive.
type source struct {
	component.Component
	// name is the source's key in the configuration, and its value in metrics.
	name string
}

// pprofReceiver starts and stops its sources together.
type pprofReceiver struct {
	sources []source
	// started holds the sources to shut down.
	started map[string]component.Component
	cfg     *Config
	metrics *metadata.TelemetryBuilder
	set     receiver.Settings
	// stopBudget ends the metrics of the process's budget. It is nil before Start.
	stopBudget func() error
}

func newReceiver(set receiver.Settings, cfg *Config, next xconsumer.Profiles) (*pprofReceiver, error) {
	metrics, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	r := &pprofReceiver{cfg: cfg, metrics: metrics, set: set, started: map[string]component.Component{}}
	var errs []error
	add := func(name, transport string, build func(*ingest.Ingester) component.Component) {
		in, err := ingest.New(ingest.Settings{
			Set: set, Config: cfg.Config, Limits: cfg.Limits.limits(), Budget: budget.Process(), Next: next, Metrics: metrics,
			Source: name, Transport: transport,
		})
		errs = append(errs, err)
		r.sources = append(r.sources, source{Component: build(in), name: name})
	}
	if c := cfg.Server.Get(); c != nil {
		add("server", "http", func(in *ingest.Ingester) component.Component { return push.New(c, set.TelemetrySettings, in) })
	}
	if c := cfg.Remote.Get(); c != nil {
		add("remote", "http", func(in *ingest.Ingester) component.Component {
			return remote.New(c, set.TelemetrySettings, in)
		})
	}
	if c := cfg.Scrape.Get(); c != nil {
		add("scrape", "http", func(in *ingest.Ingester) component.Component { return scrape.New(c, set, in) })
	}
	if c := cfg.File.Get(); c != nil {
		add("file", "file", func(in *ingest.Ingester) component.Component { return file.New(c, set, in) })
	}
	if c := cfg.Self.Get(); c != nil {
		add("self", "runtime", func(in *ingest.Ingester) component.Component { return self.New(c, set, in) })
	}
	return r, errors.Join(errs...)
}

// Start starts all sources. If one fails, those before it are shut down again.
func (r *pprofReceiver) Start(ctx context.Context, host component.Host) error {
	var err error
	if r.stopBudget, err = budget.Watch(r.set.TelemetrySettings); err != nil {
		return err
	}
	for _, s := range r.sources {
		if err := s.Start(ctx, host); err != nil {
			return errors.Join(fmt.Errorf("start `%s`: %w", s.name, err), r.Shutdown(ctx))
		}
		r.started[s.name] = s
	}
	return nil
}

// Shutdown stops all sources at once. The payloads that they are processing reach the pipeline unless it needs longer
// than until the deadline of ctx.
func (r *pprofReceiver) Shutdown(ctx context.Context) error {
	err := shutdown.All(ctx, r.started)
	clear(r.started)
	if r.stopBudget != nil {
		err = errors.Join(err, r.stopBudget())
	}
	r.metrics.Shutdown()
	return err
}
