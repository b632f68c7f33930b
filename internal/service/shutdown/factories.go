// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package shutdown

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/xconnector"
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

// Receivers wraps the factories so that the components that they create stop within the limit. Factories without
// profiles stay as they are. Extensions are not wrapped: they stop last.
func (l *Limit) Receivers(factories map[component.Type]receiver.Factory) map[component.Type]receiver.Factory {
	return bindAll(factories, func(f xreceiver.Factory) receiver.Factory {
		return xreceiver.NewFactory(f.Type(), f.CreateDefaultConfig, xreceiver.WithDeprecatedTypeAlias(aliasOf(f)),
			xreceiver.WithTraces(boundReceiver(l, f.CreateTraces), f.TracesStability()),
			xreceiver.WithMetrics(boundReceiver(l, f.CreateMetrics), f.MetricsStability()),
			xreceiver.WithLogs(boundReceiver(l, f.CreateLogs), f.LogsStability()),
			xreceiver.WithProfiles(boundReceiver(l, f.CreateProfiles), f.ProfilesStability()))
	})
}

type createReceiver[N, C any] = func(context.Context, receiver.Settings, component.Config, N) (C, error)

func boundReceiver[N any, C component.Component](l *Limit, create createReceiver[N, C]) createReceiver[N, C] {
	return func(ctx context.Context, set receiver.Settings, cfg component.Config, next N) (C, error) {
		c, err := create(ctx, set, cfg, next)
		return bind(&bounded{limit: l, kind: receiverKind, id: set.ID, logger: set.Logger}, c, err)
	}
}

// Processors is Receivers for processors.
func (l *Limit) Processors(factories map[component.Type]processor.Factory) map[component.Type]processor.Factory {
	return bindAll(factories, func(f xprocessor.Factory) processor.Factory {
		return xprocessor.NewFactory(f.Type(), f.CreateDefaultConfig, xprocessor.WithDeprecatedTypeAlias(aliasOf(f)),
			xprocessor.WithTraces(boundProcessor(l, f.CreateTraces), f.TracesStability()),
			xprocessor.WithMetrics(boundProcessor(l, f.CreateMetrics), f.MetricsStability()),
			xprocessor.WithLogs(boundProcessor(l, f.CreateLogs), f.LogsStability()),
			xprocessor.WithProfiles(boundProcessor(l, f.CreateProfiles), f.ProfilesStability()))
	})
}

type createProcessor[N, C any] = func(context.Context, processor.Settings, component.Config, N) (C, error)

func boundProcessor[N any, C component.Component](l *Limit, create createProcessor[N, C]) createProcessor[N, C] {
	return func(ctx context.Context, set processor.Settings, cfg component.Config, next N) (C, error) {
		c, err := create(ctx, set, cfg, next)
		return bind(&bounded{limit: l, kind: processorKind, id: set.ID, logger: set.Logger}, c, err)
	}
}

// Connectors is Receivers for connectors. One may pass on its sums when it stops.
func (l *Limit) Connectors(factories map[component.Type]connector.Factory) map[component.Type]connector.Factory {
	return bindAll(factories, func(f xconnector.Factory) connector.Factory {
		return xconnector.NewFactory(f.Type(), f.CreateDefaultConfig, xconnector.WithDeprecatedTypeAlias(aliasOf(f)),
			xconnector.WithTracesToTraces(boundConnector(l, f.CreateTracesToTraces), f.TracesToTracesStability()),
			xconnector.WithTracesToMetrics(boundConnector(l, f.CreateTracesToMetrics), f.TracesToMetricsStability()),
			xconnector.WithTracesToLogs(boundConnector(l, f.CreateTracesToLogs), f.TracesToLogsStability()),
			xconnector.WithTracesToProfiles(boundConnector(l, f.CreateTracesToProfiles), f.TracesToProfilesStability()),
			xconnector.WithMetricsToTraces(boundConnector(l, f.CreateMetricsToTraces), f.MetricsToTracesStability()),
			xconnector.WithMetricsToMetrics(boundConnector(l, f.CreateMetricsToMetrics), f.MetricsToMetricsStability()),
			xconnector.WithMetricsToLogs(boundConnector(l, f.CreateMetricsToLogs), f.MetricsToLogsStability()),
			xconnector.WithMetricsToProfiles(boundConnector(l, f.CreateMetricsToProfiles), f.MetricsToProfilesStability()),
			xconnector.WithLogsToTraces(boundConnector(l, f.CreateLogsToTraces), f.LogsToTracesStability()),
			xconnector.WithLogsToMetrics(boundConnector(l, f.CreateLogsToMetrics), f.LogsToMetricsStability()),
			xconnector.WithLogsToLogs(boundConnector(l, f.CreateLogsToLogs), f.LogsToLogsStability()),
			xconnector.WithLogsToProfiles(boundConnector(l, f.CreateLogsToProfiles), f.LogsToProfilesStability()),
			xconnector.WithProfilesToTraces(boundConnector(l, f.CreateProfilesToTraces), f.ProfilesToTracesStability()),
			xconnector.WithProfilesToMetrics(boundConnector(l, f.CreateProfilesToMetrics), f.ProfilesToMetricsStability()),
			xconnector.WithProfilesToLogs(boundConnector(l, f.CreateProfilesToLogs), f.ProfilesToLogsStability()),
			xconnector.WithProfilesToProfiles(boundConnector(l, f.CreateProfilesToProfiles), f.ProfilesToProfilesStability()))
	})
}

type createConnector[N, C any] = func(context.Context, connector.Settings, component.Config, N) (C, error)

func boundConnector[N any, C component.Component](l *Limit, create createConnector[N, C]) createConnector[N, C] {
	return func(ctx context.Context, set connector.Settings, cfg component.Config, next N) (C, error) {
		c, err := create(ctx, set, cfg, next)
		return bind(&bounded{limit: l, kind: connectorKind, id: set.ID, logger: set.Logger}, c, err)
	}
}

// Queues are the queues of exporters in storages.
type Queues interface {
	// Enter waits until a sender may give data of a signal to an exporter. size returns about the bytes of the data. The
	// sender calls leave afterwards.
	Enter(ctx context.Context, exporter component.ID, signal string, size func() int) (leave func(), err error)
	// Logger returns the logger that an exporter uses in place of the given one.
	Logger(exporter component.ID, logger *zap.Logger) *zap.Logger
}

// Exporters is Receivers for exporters. Senders of logs and profiles enter before they reach one.
func (l *Limit) Exporters(factories map[component.Type]exporter.Factory,
	queues Queues) map[component.Type]exporter.Factory {
	return bindAll(factories, func(f xexporter.Factory) exporter.Factory {
		return xexporter.NewFactory(f.Type(), f.CreateDefaultConfig, xexporter.WithDeprecatedTypeAlias(aliasOf(f)),
			xexporter.WithTraces(boundExporter(l, queues, f.CreateTraces), f.TracesStability()),
			xexporter.WithMetrics(boundExporter(l, queues, f.CreateMetrics), f.MetricsStability()),
			xexporter.WithLogs(boundExporter(l, queues, f.CreateLogs), f.LogsStability()),
			xexporter.WithProfiles(boundExporter(l, queues, f.CreateProfiles), f.ProfilesStability()))
	})
}

type createExporter[C any] = func(context.Context, exporter.Settings, component.Config) (C, error)

func boundExporter[C component.Component](l *Limit, queues Queues, create createExporter[C]) createExporter[C] {
	return func(ctx context.Context, set exporter.Settings, cfg component.Config) (C, error) {
		set.Logger = queues.Logger(set.ID, set.Logger)
		c, err := create(ctx, set, cfg)
		return bind(&bounded{limit: l, kind: exporterKind, id: set.ID, logger: set.Logger, queues: queues}, c, err)
	}
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

// aliasOf returns a factory's deprecated name, if it has one.
func aliasOf(factory component.Factory) (alias component.Type) {
	if f, ok := factory.(interface{ DeprecatedAlias() component.Type }); ok {
		alias = f.DeprecatedAlias()
	}
	return alias
}

// bind returns a component of the same kind that stops within the limit, unless there was an error.
func bind[C component.Component](b *bounded, c C, err error) (C, error) {
	if err != nil {
		return c, err
	}
	b.Component = c
	var all any = b
	switch any(&c).(type) { // c itself may be a consumer of more than its factory makes it for
	case *processor.Traces, *connector.Traces, *exporter.Traces:
		all = traces{b, any(c).(consumer.Traces)}
	case *processor.Metrics, *connector.Metrics, *exporter.Metrics:
		all = metrics{b, any(c).(consumer.Metrics)}
	case *processor.Logs, *connector.Logs, *exporter.Logs:
		all = logs{b, any(c).(consumer.Logs)}
	case *xprocessor.Profiles, *xconnector.Profiles, *xexporter.Profiles:
		all = profiles{b, any(c).(xconsumer.Profiles)}
	}
	return all.(C), nil
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

func (c logs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return enter(ctx, c.bounded, "logs", new(plog.ProtoMarshaler).LogsSize, c.Logs.ConsumeLogs, ld)
}

func (c profiles) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	return enter(ctx, c.bounded, "profiles", new(pprofile.ProtoMarshaler).ProfilesSize, c.Profiles.ConsumeProfiles, pd)
}

// enter consumes data when the sender may give it to the component.
func enter[D any](ctx context.Context, b *bounded, signal string, size func(D) int,
	consume func(context.Context, D) error, data D) error {
	if b.queues != nil {
		leave, err := b.queues.Enter(ctx, b.id, signal, func() int { return size(data) })
		if err != nil {
			return err
		}
		defer leave()
	}
	return consume(ctx, data)
}
