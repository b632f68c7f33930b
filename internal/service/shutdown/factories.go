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
	of := func(set receiver.Settings) *bounded {
		return &bounded{limit: l, kind: receiverKind, id: set.ID, logger: set.Logger}
	}
	return bindAll(factories, func(f xreceiver.Factory) receiver.Factory {
		return xreceiver.NewFactory(f.Type(), f.CreateDefaultConfig, xreceiver.WithDeprecatedTypeAlias(aliasOf(f)),
			xreceiver.WithTraces(bound(of, f.CreateTraces), f.TracesStability()),
			xreceiver.WithMetrics(bound(of, f.CreateMetrics), f.MetricsStability()),
			xreceiver.WithLogs(bound(of, f.CreateLogs), f.LogsStability()),
			xreceiver.WithProfiles(bound(of, f.CreateProfiles), f.ProfilesStability()))
	})
}

// bound returns a factory's method whose components stop within a limit: of returns that of a component, with its kind.
func bound[S, N any, C component.Component](of func(S) *bounded,
	create func(context.Context, S, component.Config, N) (C, error),
) func(context.Context, S, component.Config, N) (C, error) {
	return func(ctx context.Context, set S, cfg component.Config, next N) (C, error) {
		c, err := create(ctx, set, cfg, next)
		return bind(of(set), c, err)
	}
}

// Processors is Receivers for processors.
func (l *Limit) Processors(factories map[component.Type]processor.Factory) map[component.Type]processor.Factory {
	of := func(set processor.Settings) *bounded {
		return &bounded{limit: l, kind: processorKind, id: set.ID, logger: set.Logger}
	}
	return bindAll(factories, func(f xprocessor.Factory) processor.Factory {
		return xprocessor.NewFactory(f.Type(), f.CreateDefaultConfig, xprocessor.WithDeprecatedTypeAlias(aliasOf(f)),
			xprocessor.WithTraces(bound(of, f.CreateTraces), f.TracesStability()),
			xprocessor.WithMetrics(bound(of, f.CreateMetrics), f.MetricsStability()),
			xprocessor.WithLogs(bound(of, f.CreateLogs), f.LogsStability()),
			xprocessor.WithProfiles(bound(of, f.CreateProfiles), f.ProfilesStability()))
	})
}

// Connectors is Receivers for connectors. One may pass on its sums when it stops.
func (l *Limit) Connectors(factories map[component.Type]connector.Factory) map[component.Type]connector.Factory {
	of := func(set connector.Settings) *bounded {
		return &bounded{limit: l, kind: connectorKind, id: set.ID, logger: set.Logger}
	}
	return bindAll(factories, func(f xconnector.Factory) connector.Factory {
		return xconnector.NewFactory(f.Type(), f.CreateDefaultConfig, xconnector.WithDeprecatedTypeAlias(aliasOf(f)),
			xconnector.WithTracesToTraces(bound(of, f.CreateTracesToTraces), f.TracesToTracesStability()),
			xconnector.WithTracesToMetrics(bound(of, f.CreateTracesToMetrics), f.TracesToMetricsStability()),
			xconnector.WithTracesToLogs(bound(of, f.CreateTracesToLogs), f.TracesToLogsStability()),
			xconnector.WithTracesToProfiles(bound(of, f.CreateTracesToProfiles), f.TracesToProfilesStability()),
			xconnector.WithMetricsToTraces(bound(of, f.CreateMetricsToTraces), f.MetricsToTracesStability()),
			xconnector.WithMetricsToMetrics(bound(of, f.CreateMetricsToMetrics), f.MetricsToMetricsStability()),
			xconnector.WithMetricsToLogs(bound(of, f.CreateMetricsToLogs), f.MetricsToLogsStability()),
			xconnector.WithMetricsToProfiles(bound(of, f.CreateMetricsToProfiles), f.MetricsToProfilesStability()),
			xconnector.WithLogsToTraces(bound(of, f.CreateLogsToTraces), f.LogsToTracesStability()),
			xconnector.WithLogsToMetrics(bound(of, f.CreateLogsToMetrics), f.LogsToMetricsStability()),
			xconnector.WithLogsToLogs(bound(of, f.CreateLogsToLogs), f.LogsToLogsStability()),
			xconnector.WithLogsToProfiles(bound(of, f.CreateLogsToProfiles), f.LogsToProfilesStability()),
			xconnector.WithProfilesToTraces(bound(of, f.CreateProfilesToTraces), f.ProfilesToTracesStability()),
			xconnector.WithProfilesToMetrics(bound(of, f.CreateProfilesToMetrics), f.ProfilesToMetricsStability()),
			xconnector.WithProfilesToLogs(bound(of, f.CreateProfilesToLogs), f.ProfilesToLogsStability()),
			xconnector.WithProfilesToProfiles(bound(of, f.CreateProfilesToProfiles), f.ProfilesToProfilesStability()))
	})
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
