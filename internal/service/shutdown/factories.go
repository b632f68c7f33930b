// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package shutdown

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/xprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"go.uber.org/zap"
)

// Receivers wraps the factories so that the components that they create stop within the limit. Factories without profiles stay
// as they are. Connectors and extensions are not wrapped: connectors keep no data, and extensions stop last.
func (l *Limit) Receivers(factories map[component.Type]receiver.Factory) map[component.Type]receiver.Factory {
	return bindAll(factories, func(f xreceiver.Factory) receiver.Factory { return receivers{f, aliasOf(f), l} })
}

// Processors is Receivers for processors.
func (l *Limit) Processors(factories map[component.Type]processor.Factory) map[component.Type]processor.Factory {
	return bindAll(factories, func(f xprocessor.Factory) processor.Factory { return processors{f, aliasOf(f), l} })
}

// Queues are the queues of exporters in storages.
type Queues interface {
	// Enter waits until a sender may give data of a signal to an exporter. size returns about the bytes of the data. The sender
	// calls leave afterwards.
	Enter(ctx context.Context, exporter component.ID, signal string, size func() int) (leave func(), err error)
	// Logger returns the logger that an exporter uses in place of the given one.
	Logger(exporter component.ID, logger *zap.Logger) *zap.Logger
}

// Exporters is Receivers for exporters. Senders of logs and profiles enter before they reach one.
func (l *Limit) Exporters(factories map[component.Type]exporter.Factory, queues Queues) map[component.Type]exporter.Factory {
	return bindAll(factories, func(f xexporter.Factory) exporter.Factory { return exporters{f, aliasOf(f), l, queues} })
}

func bindAll[F, X component.Factory](factories map[component.Type]F, bind func(X) F) map[component.Type]F {
	bound := make(map[component.Type]F, len(factories))
	for name, factory := range factories {
		bound[name] = factory
		if x, ok := any(factory).(X); ok {
			bound[name] = bind(x)
		}
	}
	return bound
}

// aliased is the interface through which the service reads a factory's deprecated name.
type aliased interface {
	DeprecatedAlias() component.Type
	SetDeprecatedAlias(component.Type)
}

func aliasOf(factory component.Factory) aliased {
	if alias, ok := factory.(aliased); ok {
		return alias
	}
	return noAlias{}
}

type noAlias struct{}

func (noAlias) DeprecatedAlias() component.Type   { return component.Type{} }
func (noAlias) SetDeprecatedAlias(component.Type) {}

func (l *Limit) bind(c component.Component, k kind, id component.ID, logger *zap.Logger) *bounded {
	return &bounded{Component: c, limit: l, kind: k, id: id, logger: logger}
}

// The components that are consumers as well.
type (
	traces struct {
		*bounded
		consumer.Traces
	}
	metrics struct {
		*bounded
		consumer.Metrics
	}
	logs struct {
		*bounded
		consumer.Logs
	}
	profiles struct {
		*bounded
		xconsumer.Profiles
	}
)

type receivers struct {
	xreceiver.Factory
	aliased
	limit *Limit
}

func (f receivers) CreateTraces(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Traces) (receiver.Traces, error) {
	c, err := f.Factory.CreateTraces(ctx, set, cfg, next)
	return f.limit.bind(c, receiverKind, set.ID, set.Logger), err
}

func (f receivers) CreateMetrics(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	c, err := f.Factory.CreateMetrics(ctx, set, cfg, next)
	return f.limit.bind(c, receiverKind, set.ID, set.Logger), err
}

func (f receivers) CreateLogs(ctx context.Context, set receiver.Settings, cfg component.Config, next consumer.Logs) (receiver.Logs, error) {
	c, err := f.Factory.CreateLogs(ctx, set, cfg, next)
	return f.limit.bind(c, receiverKind, set.ID, set.Logger), err
}

func (f receivers) CreateProfiles(ctx context.Context, set receiver.Settings, cfg component.Config, next xconsumer.Profiles) (xreceiver.Profiles, error) {
	c, err := f.Factory.CreateProfiles(ctx, set, cfg, next)
	return f.limit.bind(c, receiverKind, set.ID, set.Logger), err
}

type processors struct {
	xprocessor.Factory
	aliased
	limit *Limit
}

func (f processors) CreateTraces(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	c, err := f.Factory.CreateTraces(ctx, set, cfg, next)
	return traces{f.limit.bind(c, processorKind, set.ID, set.Logger), c}, err
}

func (f processors) CreateMetrics(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	c, err := f.Factory.CreateMetrics(ctx, set, cfg, next)
	return metrics{f.limit.bind(c, processorKind, set.ID, set.Logger), c}, err
}

func (f processors) CreateLogs(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
	c, err := f.Factory.CreateLogs(ctx, set, cfg, next)
	return logs{f.limit.bind(c, processorKind, set.ID, set.Logger), c}, err
}

func (f processors) CreateProfiles(ctx context.Context, set processor.Settings, cfg component.Config, next xconsumer.Profiles) (xprocessor.Profiles, error) {
	c, err := f.Factory.CreateProfiles(ctx, set, cfg, next)
	return profiles{f.limit.bind(c, processorKind, set.ID, set.Logger), c}, err
}

type exporters struct {
	xexporter.Factory
	aliased
	limit  *Limit
	queues Queues
}

func (f exporters) CreateTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	set.Logger = f.queues.Logger(set.ID, set.Logger)
	c, err := f.Factory.CreateTraces(ctx, set, cfg)
	return traces{f.limit.bind(c, exporterKind, set.ID, set.Logger), c}, err
}

func (f exporters) CreateMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	set.Logger = f.queues.Logger(set.ID, set.Logger)
	c, err := f.Factory.CreateMetrics(ctx, set, cfg)
	return metrics{f.limit.bind(c, exporterKind, set.ID, set.Logger), c}, err
}

func (f exporters) CreateLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	set.Logger = f.queues.Logger(set.ID, set.Logger)
	c, err := f.Factory.CreateLogs(ctx, set, cfg)
	return logs{f.limit.bind(c, exporterKind, set.ID, set.Logger), enteredLogs{c, f.queues, set.ID}}, err
}

func (f exporters) CreateProfiles(ctx context.Context, set exporter.Settings, cfg component.Config) (xexporter.Profiles, error) {
	set.Logger = f.queues.Logger(set.ID, set.Logger)
	c, err := f.Factory.CreateProfiles(ctx, set, cfg)
	return profiles{f.limit.bind(c, exporterKind, set.ID, set.Logger), enteredProfiles{c, f.queues, set.ID}}, err
}

type enteredLogs struct {
	consumer.Logs
	queues Queues
	id     component.ID
}

func (c enteredLogs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	size := func() int { return new(plog.ProtoMarshaler).LogsSize(ld) }
	leave, err := c.queues.Enter(ctx, c.id, "logs", size)
	if err != nil {
		return err
	}
	defer leave()
	return c.Logs.ConsumeLogs(ctx, ld)
}

type enteredProfiles struct {
	xconsumer.Profiles
	queues Queues
	id     component.ID
}

func (c enteredProfiles) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	size := func() int { return new(pprofile.ProtoMarshaler).ProfilesSize(pd) }
	leave, err := c.queues.Enter(ctx, c.id, "profiles", size)
	if err != nil {
		return err
	}
	defer leave()
	return c.Profiles.ConsumeProfiles(ctx, pd)
}
