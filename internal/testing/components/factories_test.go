// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/xprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"

	"github.com/otelcol-profiles/otelcol-profiles/connector/profilemetricsconnector"
	"github.com/otelcol-profiles/otelcol-profiles/connector/profilestologsconnector"
	"github.com/otelcol-profiles/otelcol-profiles/connector/splunkprofilingconnector"
	"github.com/otelcol-profiles/otelcol-profiles/exporter/pproffileexporter"
	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestologsexporter"
	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestoreexporter"
	"github.com/otelcol-profiles/otelcol-profiles/exporter/pyroscopeexporter"
	"github.com/otelcol-profiles/otelcol-profiles/extension/plainattributesextension"
	"github.com/otelcol-profiles/otelcol-profiles/processor/dictionarydedupprocessor"
	"github.com/otelcol-profiles/otelcol-profiles/processor/hostdetectionprocessor"
	"github.com/otelcol-profiles/otelcol-profiles/processor/processresourceprocessor"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/otlpprofilesreceiver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/processesreceiver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/profilingreceiver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/splunkprofilingreceiver"
)

// factories are those of all components, by their folder.
var factories = map[string]component.Factory{
	"connector/profilemetricsconnector":  profilemetricsconnector.NewFactory(),
	"connector/profilestologsconnector":  profilestologsconnector.NewFactory(),
	"connector/splunkprofilingconnector": splunkprofilingconnector.NewFactory(),
	"exporter/pproffileexporter":         pproffileexporter.NewFactory(),
	"exporter/profilestologsexporter":    profilestologsexporter.NewFactory(),
	"exporter/profilestoreexporter":      profilestoreexporter.NewFactory(),
	"exporter/pyroscopeexporter":         pyroscopeexporter.NewFactory(),
	"extension/plainattributesextension": plainattributesextension.NewFactory(),
	"processor/dictionarydedupprocessor": dictionarydedupprocessor.NewFactory(),
	"processor/hostdetectionprocessor":   hostdetectionprocessor.NewFactory(),
	"processor/processresourceprocessor": processresourceprocessor.NewFactory(),
	"processor/symbolizeprocessor":       symbolizeprocessor.NewFactory(),
	"receiver/otlpprofilesreceiver":      otlpprofilesreceiver.NewFactory(),
	"receiver/pprofreceiver":             pprofreceiver.NewFactory(),
	"receiver/processesreceiver":         processesreceiver.NewFactory(),
	"receiver/profilingreceiver":         profilingreceiver.NewFactory(),
	"receiver/splunkprofilingreceiver":   splunkprofilingreceiver.NewFactory(),
}

// signal is a kind of component that a factory can make. It is undefined if this factory cannot.
type signal struct {
	stability component.StabilityLevel
	create    func(context.Context, component.TelemetrySettings, component.Config) (component.Component, error)
}

// signalsOf returns the signals of a factory by the names that metadata.yaml has for them.
func signalsOf(factory component.Factory) map[string]signal {
	next, id := consumertest.NewNop(), component.NewID(factory.Type())
	type (
		ctx       = context.Context
		telemetry = component.TelemetrySettings
		config    = component.Config
		made      = component.Component
	)
	switch f := factory.(type) {
	case xreceiver.Factory:
		return map[string]signal{
			"profiles": {f.ProfilesStability(), func(c ctx, set telemetry, cfg config) (made, error) {
				return f.CreateProfiles(c, receiver.Settings{ID: id, TelemetrySettings: set}, cfg, next)
			}},
			"logs": {f.LogsStability(), func(c ctx, set telemetry, cfg config) (made, error) {
				return f.CreateLogs(c, receiver.Settings{ID: id, TelemetrySettings: set}, cfg, next)
			}},
		}
	case xprocessor.Factory:
		return map[string]signal{
			"profiles": {f.ProfilesStability(), func(c ctx, set telemetry, cfg config) (made, error) {
				return f.CreateProfiles(c, processor.Settings{ID: id, TelemetrySettings: set}, cfg, next)
			}},
			"traces": {f.TracesStability(), func(c ctx, set telemetry, cfg config) (made, error) {
				return f.CreateTraces(c, processor.Settings{ID: id, TelemetrySettings: set}, cfg, next)
			}},
			"metrics": {f.MetricsStability(), func(c ctx, set telemetry, cfg config) (made, error) {
				return f.CreateMetrics(c, processor.Settings{ID: id, TelemetrySettings: set}, cfg, next)
			}},
			"logs": {f.LogsStability(), func(c ctx, set telemetry, cfg config) (made, error) {
				return f.CreateLogs(c, processor.Settings{ID: id, TelemetrySettings: set}, cfg, next)
			}},
		}
	case xexporter.Factory:
		return map[string]signal{
			"profiles": {f.ProfilesStability(), func(c ctx, set telemetry, cfg config) (made, error) {
				return f.CreateProfiles(c, exporter.Settings{ID: id, TelemetrySettings: set}, cfg)
			}},
		}
	case xconnector.Factory:
		return map[string]signal{
			"profiles_to_metrics": {f.ProfilesToMetricsStability(), func(c ctx, set telemetry, cfg config) (made, error) {
				return f.CreateProfilesToMetrics(c, connector.Settings{ID: id, TelemetrySettings: set}, cfg, next)
			}},
			"profiles_to_logs": {f.ProfilesToLogsStability(), func(c ctx, set telemetry, cfg config) (made, error) {
				return f.CreateProfilesToLogs(c, connector.Settings{ID: id, TelemetrySettings: set}, cfg, next)
			}},
			"logs_to_profiles": {f.LogsToProfilesStability(), func(c ctx, set telemetry, cfg config) (made, error) {
				return f.CreateLogsToProfiles(c, connector.Settings{ID: id, TelemetrySettings: set}, cfg, next)
			}},
			"logs_to_logs": {f.LogsToLogsStability(), func(c ctx, set telemetry, cfg config) (made, error) {
				return f.CreateLogsToLogs(c, connector.Settings{ID: id, TelemetrySettings: set}, cfg, next)
			}},
		}
	case extension.Factory:
		return map[string]signal{
			"extension": {f.Stability(), func(c ctx, set telemetry, cfg config) (made, error) {
				return f.Create(c, extension.Settings{ID: id, TelemetrySettings: set}, cfg)
			}},
		}
	}
	return nil
}
