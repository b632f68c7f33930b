// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package shutdown

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/xconnector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/xprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/safestorage"
)

var stuckType = component.MustNewType("stuck")

// stuckComponent is a component whose Shutdown waits until released is closed, whether or not the context ends.
type stuckComponent struct {
	component.StartFunc
	xconsumer.Profiles
	released chan struct{}
}

func (s *stuckComponent) Shutdown(context.Context) error {
	<-s.released
	return errors.New("released")
}

// made returns a function that creates c, for a factory.
func made[Settings, Next, C any](c C) func(context.Context, Settings, component.Config, Next) (C, error) {
	return func(context.Context, Settings, component.Config, Next) (C, error) { return c, nil }
}

// madeLast is made for exporters.
func madeLast[C any](c C) func(context.Context, exporter.Settings, component.Config) (C, error) {
	return func(context.Context, exporter.Settings, component.Config) (C, error) { return c, nil }
}

func noConfig() component.Config { return nil }

const alpha = component.StabilityLevelAlpha

// service makes a receiver, a processor and an exporter that are stuck, through bound factories.
func service(t *testing.T, limit *Limit, logger *zap.Logger) (components []component.Component, release func()) {
	t.Helper()
	stuck := &stuckComponent{Profiles: consumertest.NewNop(), released: make(chan struct{})}
	receivers := limit.Receivers(map[component.Type]receiver.Factory{stuckType: xreceiver.NewFactory(stuckType, noConfig,
		xreceiver.WithProfiles(made[receiver.Settings, xconsumer.Profiles, xreceiver.Profiles](stuck), alpha))})
	processors := limit.Processors(map[component.Type]processor.Factory{stuckType: xprocessor.NewFactory(stuckType,
		noConfig, xprocessor.WithProfiles(made[processor.Settings, xconsumer.Profiles, xprocessor.Profiles](stuck), alpha))})
	exporters := limit.Exporters(map[component.Type]exporter.Factory{stuckType: xexporter.NewFactory(stuckType, noConfig,
		xexporter.WithProfiles(madeLast[xexporter.Profiles](stuck), alpha))}, new(safestorage.Storages))

	id, telemetry := component.NewID(stuckType), componenttest.NewNopTelemetrySettings()
	telemetry.Logger = logger
	r, err := receivers[stuckType].(xreceiver.Factory).CreateProfiles(t.Context(),
		receiver.Settings{ID: id, TelemetrySettings: telemetry}, nil, consumertest.NewNop())
	require.NoError(t, err)
	p, err := processors[stuckType].(xprocessor.Factory).CreateProfiles(t.Context(),
		processor.Settings{ID: id, TelemetrySettings: telemetry}, nil, consumertest.NewNop())
	require.NoError(t, err)
	e, err := exporters[stuckType].(xexporter.Factory).CreateProfiles(t.Context(),
		exporter.Settings{ID: id, TelemetrySettings: telemetry}, nil)
	require.NoError(t, err)
	require.NoError(t, p.ConsumeProfiles(t.Context(), pprofile.NewProfiles()))
	require.NoError(t, e.ConsumeProfiles(t.Context(), pprofile.NewProfiles()))
	components = []component.Component{r, p, e}
	for _, c := range components {
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	}
	return components, func() { close(stuck.released) }
}

// TestStuckComponentsAreLeftBehind stops three components that never stop by themselves.
func TestStuckComponentsAreLeftBehind(t *testing.T) { synctest.Test(t, stuckComponentsAreLeftBehind) }

func stuckComponentsAreLeftBehind(t *testing.T) {
	core, log := observer.New(zap.ErrorLevel)
	limit := NewLimit(2*time.Second, func() {})
	components, release := service(t, limit, zap.New(core))
	defer release()
	began := time.Now()
	for i, c := range components {
		require.NoError(t, c.Shutdown(t.Context()))
		// Each kind leaves time for the next one.
		assert.GreaterOrEqual(t, time.Since(began),
			[]time.Duration{time.Second, 1500 * time.Millisecond, 1900 * time.Millisecond}[i])
	}
	require.ErrorContains(t, limit.Err(), "3 components did not stop in time")
	require.Equal(t, 3, log.Len())
	for i, entry := range log.All() {
		assert.Contains(t, entry.ContextMap()["component"], []string{"receiver stuck", "processor stuck", "exporter stuck"}[i])
	}
	limit.Renew()
	require.NoError(t, limit.Err(), "a reloaded configuration has stopped nothing yet")
}

// A connector that never stops is left behind, too, and the last resort is armed.
func TestAStuckConnectorIsLeftBehind(t *testing.T) { synctest.Test(t, aStuckConnectorIsLeftBehind) }

func aStuckConnectorIsLeftBehind(t *testing.T) {
	core, log := observer.New(zap.ErrorLevel)
	limit := NewLimit(time.Second, func() {})
	stuck := &stuckComponent{Profiles: consumertest.NewNop(), released: make(chan struct{})}
	defer close(stuck.released)
	factories := limit.Connectors(map[component.Type]connector.Factory{stuckType: xconnector.NewFactory(stuckType,
		noConfig,
		xconnector.WithProfilesToMetrics(made[connector.Settings, consumer.Metrics, xconnector.Profiles](stuck), alpha))})
	factory := factories[stuckType].(xconnector.Factory)
	assert.Equal(t, alpha, factory.ProfilesToMetricsStability())
	set := connector.Settings{ID: component.NewID(stuckType), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	set.Logger = zap.New(core)
	c, err := factory.CreateProfilesToMetrics(t.Context(), set, nil, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, c.ConsumeProfiles(t.Context(), pprofile.NewProfiles()))
	require.NoError(t, c.Shutdown(t.Context()))
	require.Equal(t, 1, log.Len())
	assert.Equal(t, "connector stuck", log.All()[0].ContextMap()["component"])
	assert.NotNil(t, limit.lastResort)
	limit.Renew()
}

// TestErrorsDoNotEndAReload stops components that fail in time. The service must not learn of it: it would end the
// process instead of going on with the reloaded configuration.
func TestErrorsDoNotEndAReload(t *testing.T) {
	core, log := observer.New(zap.ErrorLevel)
	limit := NewLimit(time.Minute, func() {})
	components, release := service(t, limit, zap.New(core))
	release()
	for _, c := range components {
		require.NoError(t, c.Shutdown(t.Context()))
	}
	require.EqualError(t, limit.Err(), "receiver stuck: released\nprocessor stuck: released\nexporter stuck: released")
	require.Equal(t, 3, log.Len())
	limit.Renew()
	require.NoError(t, limit.Err())
}

// TestLateShutdown stops services whose shutdown did not begin with a signal.
func TestLateShutdown(t *testing.T) { synctest.Test(t, lateShutdown) }

func lateShutdown(t *testing.T) {
	const timeout = 300 * time.Millisecond
	late := make(chan time.Time, 10)
	limit := NewLimit(timeout, func() { late <- time.Now() })
	isLate := func() bool {
		select {
		case <-late:
			return true
		case <-time.After(4 * timeout):
			return false
		}
	}
	components, release := service(t, limit, zap.NewNop())
	release()
	receiver, exporter := components[0], components[2]
	require.NoError(t, receiver.Shutdown(t.Context()))
	require.False(t, isLate(), "a receiver is removed, and the service runs on")

	// The next shutdown has all of its time.
	require.Greater(t, limit.wait(receiverKind), timeout/4)
	require.NoError(t, receiver.Start(t.Context(), componenttest.NewNopHost()))
	time.Sleep(timeout / 2)
	require.Greater(t, limit.wait(receiverKind), timeout/4, "a component that starts is that of another configuration")

	require.NoError(t, exporter.Shutdown(t.Context()))
	limit.Renew()
	require.False(t, isLate(), "a reload")

	began := time.Now()
	require.NoError(t, receiver.Shutdown(t.Context()))
	require.NoError(t, exporter.Shutdown(t.Context()))
	require.True(t, isLate(), "an extension does not stop")
	require.GreaterOrEqual(t, time.Since(began), 2*timeout)
}

func TestTimeout(t *testing.T) {
	timeout, err := Timeout()
	require.NoError(t, err)
	require.Equal(t, DefaultTimeout, timeout)
	t.Setenv(Variable, "90s")
	timeout, err = Timeout()
	require.NoError(t, err)
	require.Equal(t, 90*time.Second, timeout)
	for _, bad := range []string{"10", "-1s", "0s", "soon"} {
		t.Setenv(Variable, bad)
		_, err = Timeout()
		require.ErrorContains(t, err, Variable+" must be a positive duration such as 25s, found \""+bad+"\"")
	}
}

// TestFactoriesKeepTheirNames checks what the service asks factories for besides components.
func TestFactoriesKeepTheirNames(t *testing.T) {
	limit := NewLimit(time.Second, func() {})
	plain := exporter.NewFactory(stuckType, noConfig)
	bound := limit.Exporters(map[component.Type]exporter.Factory{stuckType: plain}, nil)
	require.Equal(t, plain, bound[stuckType], "a factory without profiles")
	old := component.MustNewType("old")
	x := xexporter.NewFactory(stuckType, noConfig, xexporter.WithDeprecatedTypeAlias(old))
	bound = limit.Exporters(map[component.Type]exporter.Factory{stuckType: x}, nil)
	require.Equal(t, old, aliasOf(bound[stuckType]))
	require.Equal(t, stuckType, bound[stuckType].Type())
}

// A component has the time that Limit gives it, or ten seconds.
func TestDeadline(t *testing.T) {
	limited, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for ctx, want := range map[context.Context]time.Duration{limited: time.Hour, t.Context(): 10 * time.Second} {
		ctx, cancel := Deadline(ctx)
		end, ok := ctx.Deadline()
		require.True(t, ok)
		assert.WithinDuration(t, time.Now().Add(want), end, time.Minute/12)
		cancel()
		require.ErrorIs(t, ctx.Err(), context.Canceled)
	}
}

// everything is a component for every kind of pipeline.
type everything struct {
	component.StartFunc
	component.ShutdownFunc
	*consumertest.TracesSink
	*consumertest.MetricsSink
	*consumertest.LogsSink
	*consumertest.ProfilesSink
}

func (everything) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// enteringQueues records what enters.
type enteringQueues struct{ entered, left []string }

func (q *enteringQueues) Enter(_ context.Context, id component.ID, signal string, size func() int) (func(), error) {
	q.entered = append(q.entered, fmt.Sprintf("%s %s %d", id, signal, size()))
	return func() { q.left = append(q.left, signal) }, nil
}

func (q *enteringQueues) Logger(_ component.ID, logger *zap.Logger) *zap.Logger { return logger }

// Bound components pass on what they consume, in every kind of pipeline, also if they could be in several.
func TestBoundComponentsConsume(t *testing.T) {
	next := everything{
		TracesSink: new(consumertest.TracesSink), MetricsSink: new(consumertest.MetricsSink),
		LogsSink: new(consumertest.LogsSink), ProfilesSink: new(consumertest.ProfilesSink),
	}
	limit, queues := NewLimit(time.Minute, func() {}), &enteringQueues{}
	processors := limit.Processors(map[component.Type]processor.Factory{stuckType: xprocessor.NewFactory(stuckType,
		noConfig, xprocessor.WithTraces(made[processor.Settings, consumer.Traces, processor.Traces](next), alpha),
		xprocessor.WithMetrics(made[processor.Settings, consumer.Metrics, processor.Metrics](next), alpha),
		xprocessor.WithLogs(made[processor.Settings, consumer.Logs, processor.Logs](next), alpha),
		xprocessor.WithProfiles(made[processor.Settings, xconsumer.Profiles, xprocessor.Profiles](next), alpha))})
	exporters := limit.Exporters(map[component.Type]exporter.Factory{stuckType: xexporter.NewFactory(stuckType, noConfig,
		xexporter.WithTraces(madeLast[exporter.Traces](next), alpha),
		xexporter.WithMetrics(madeLast[exporter.Metrics](next), alpha),
		xexporter.WithLogs(madeLast[exporter.Logs](next), alpha),
		xexporter.WithProfiles(madeLast[xexporter.Profiles](next), alpha))}, queues)
	p, e := processors[stuckType].(xprocessor.Factory), exporters[stuckType].(xexporter.Factory)
	forProcessor := processor.Settings{ID: component.NewID(stuckType),
		TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	forExporter := exporter.Settings{ID: forProcessor.ID, TelemetrySettings: forProcessor.TelemetrySettings}
	consume := func(c component.Component, err error) {
		require.NoError(t, err)
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
		switch c := c.(type) {
		case consumer.Traces:
			require.NoError(t, c.ConsumeTraces(t.Context(), ptrace.NewTraces()))
			assert.True(t, c.Capabilities().MutatesData)
		case consumer.Metrics:
			require.NoError(t, c.ConsumeMetrics(t.Context(), pmetric.NewMetrics()))
		case consumer.Logs:
			require.NoError(t, c.ConsumeLogs(t.Context(), plog.NewLogs()))
		case xconsumer.Profiles:
			require.NoError(t, c.ConsumeProfiles(t.Context(), pprofile.NewProfiles()))
		}
	}
	consume(p.CreateTraces(t.Context(), forProcessor, nil, next))
	consume(p.CreateMetrics(t.Context(), forProcessor, nil, next))
	consume(p.CreateLogs(t.Context(), forProcessor, nil, next))
	consume(p.CreateProfiles(t.Context(), forProcessor, nil, next))
	consume(e.CreateTraces(t.Context(), forExporter, nil))
	consume(e.CreateMetrics(t.Context(), forExporter, nil))
	consume(e.CreateLogs(t.Context(), forExporter, nil))
	consume(e.CreateProfiles(t.Context(), forExporter, nil))
	assert.Len(t, next.AllTraces(), 2)
	assert.Len(t, next.AllMetrics(), 2)
	assert.Len(t, next.AllLogs(), 2)
	assert.Len(t, next.AllProfiles(), 2)
	assert.Equal(t, []string{"stuck logs 0", "stuck profiles 2"}, queues.entered, "only exporters have queues")
	assert.Equal(t, []string{"logs", "profiles"}, queues.left)
}
