// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionarydedupprocessor

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/processor/xprocessor"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/collectortest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/testing/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/dictionarydedupprocessor/internal/metadata"
)

// sink is the next component. It accepts everything for which accept returns no error.
type sink struct {
	mu       sync.Mutex
	received []pprofile.Profiles
	contexts []context.Context
	accept   func(context.Context, pprofile.Profiles) error
}

func (s *sink) consume(ctx context.Context, pd pprofile.Profiles) error {
	if s.accept != nil {
		if err := s.accept(ctx, pd); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, pd)
	s.contexts = append(s.contexts, ctx)
	return nil
}

func (s *sink) all() []pprofile.Profiles {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]pprofile.Profiles(nil), s.received...)
}

func (s *sink) samples() int {
	n := 0
	for _, pd := range s.all() {
		n += pd.SampleCount()
	}
	return n
}

// fixture is a running processor before a sink.
type fixture struct {
	t         *testing.T
	config    *Config
	processor xprocessor.Profiles
	sink      sink
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
}

// start makes the processor with the default configuration as change leaves it, and starts it. Senders do not wait for
// the delivery unless change sets it: most tests send several messages from one goroutine, and look at the batch that
// they are in.
func start(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, config: createDefaultConfig().(*Config), telemetry: componenttest.NewTelemetry()}
	f.config.Acknowledge = AcknowledgeBatched
	f.config.RetryOnFailure.InitialInterval = time.Millisecond
	if change != nil {
		change(f.config)
	}
	require.NoError(t, f.config.Validate())
	next, err := xconsumer.NewProfiles(f.sink.consume)
	require.NoError(t, err)
	f.processor, err = NewFactory().(xprocessor.Factory).CreateProfiles(t.Context(), f.settings(), f.config, next)
	require.NoError(t, err)
	require.NoError(t, f.processor.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		f.stop()
		require.NoError(t, f.telemetry.Shutdown(context.Background()))
	})
	return f
}

func (f *fixture) settings() processor.Settings {
	core, logs := observer.New(zap.DebugLevel)
	f.logs = logs
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = f.telemetry.NewTelemetrySettings()
	set.Logger = zap.New(core)
	return set
}

// stop may be called several times, as Shutdown may be.
func (f *fixture) stop() { f.stopWithin(patience) }

func (f *fixture) stopWithin(timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	require.NoError(f.t, f.processor.Shutdown(ctx))
}

func (f *fixture) consume(pd pprofile.Profiles) {
	f.t.Helper()
	require.NoError(f.t, f.processor.ConsumeProfiles(f.t.Context(), pd))
}

// sum adds up a metric's points that have the given attributes, or all of them.
func (f *fixture) sum(name string, attributes ...string) int64 {
	f.t.Helper()
	return collectortest.Sum(f.t, f.telemetry, "otelcol_processor_dictionary_dedup_"+name, attributes...)
}

// message has a profile of one service with samples of different stacks.
func message(service string, samples int) pprofile.Profiles {
	b := profiletest.New().Resource("service.name", service).Scope("test", "1").
		Profile("cpu", "nanoseconds").Time(1_700_000_000_000_000_000, 10_000_000_000)
	for i := range samples {
		b.Sample(profiletest.Value(int64(i+1), "leaf."+string(rune('a'+i%26)), "middle."+string(rune('a'+i/26%26)),
			"root."+string(rune('a'+i/676)), "main.main"))
	}
	return b.Build()
}
