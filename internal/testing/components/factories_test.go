// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"cmp"
	"context"
	"reflect"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"

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

// signalsOf returns the signals of a factory by the names that metadata.yaml has for them: CreateLogsToProfiles and
// LogsToProfilesStability are those of logs_to_profiles, Create and Stability those of an extension.
func signalsOf(factory component.Factory) map[string]signal {
	signals := map[string]signal{}
	f := reflect.ValueOf(factory)
	for method := range f.Type().Methods() {
		name, isStability := strings.CutSuffix(method.Name, "Stability")
		if !isStability {
			continue
		}
		create := f.MethodByName("Create" + name)
		key := strings.ToLower(cmp.Or(strings.ReplaceAll(name, "To", "_to_"), "extension"))
		signals[key] = signal{
			f.MethodByName(method.Name).Call(nil)[0].Interface().(component.StabilityLevel),
			func(ctx context.Context, set component.TelemetrySettings, config component.Config) (component.Component, error) {
				settings := reflect.New(create.Type().In(1)).Elem()
				settings.FieldByName("ID").Set(reflect.ValueOf(component.NewID(factory.Type())))
				settings.FieldByName("TelemetrySettings").Set(reflect.ValueOf(set))
				in := []reflect.Value{reflect.ValueOf(ctx), settings, reflect.ValueOf(config)}
				if create.Type().NumIn() > len(in) {
					in = append(in, reflect.ValueOf(consumertest.NewNop()))
				}
				out := create.Call(in)
				made, _ := out[0].Interface().(component.Component)
				err, _ := out[1].Interface().(error)
				return made, err
			},
		}
	}
	return signals
}
