// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/service/await"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/lookup"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/sources"
)

type symbolizer struct {
	config   *Config
	settings component.TelemetrySettings
	logger   *zap.Logger
	next     xconsumer.Profiles
	metrics  *metrics

	resolver *lookup.Resolver
	// failures are the servers and reasons that were logged.
	failures telemetry.Once[[2]string]
	// stopping ends when Shutdown calls stop.
	stopping context.Context
	stop     context.CancelFunc
	stopped  sync.WaitGroup
}

func newProcessor(set processor.Settings, config *Config, next xconsumer.Profiles) (*symbolizer, error) {
	s := &symbolizer{config: config, settings: set.TelemetrySettings, logger: set.Logger, next: next}
	s.stopping, s.stop = context.WithCancel(context.Background())
	var err error
	if s.metrics, err = newMetrics(set.TelemetrySettings, set.ID); err != nil {
		return nil, fmt.Errorf("make the metrics: %w", err)
	}
	return s, nil
}

// Capabilities reports that messages change.
func (s *symbolizer) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// Start begins the workers.
func (s *symbolizer) Start(ctx context.Context, host component.Host) error {
	c := s.config
	var client *http.Client
	if debuginfod := &c.Sources.Debuginfod; len(debuginfod.Servers) > 0 {
		var err error
		if client, err = debuginfod.HTTP.ToClient(ctx, host.GetExtensions(), s.settings); err != nil {
			return fmt.Errorf("`debuginfod.http`: %w", err)
		}
		client.CheckRedirect = httpserver.SameOriginOnly
	}
	finder := sources.NewFinder(c.Sources, client, s.noteRequest)
	s.resolver = lookup.New(c.Lookup, finder, func(kind sources.Kind, took time.Duration) {
		s.metrics.ProcessorSymbolizeSourceDuration.Record(context.Background(), took.Seconds(), s.metrics.sources[kind])
	})
	s.stopped.Go(func() {
		for await.Sleep(s.stopping, reportInterval) {
			s.logUnresolved()
		}
	})
	return s.metrics.observe(s.resolver, finder)
}

// noteRequest counts a request to a debuginfod server, and logs each kind of its failures once.
func (s *symbolizer) noteRequest(r sources.Request) {
	s.metrics.ProcessorSymbolizeDebuginfodRequests.Add(context.Background(), 1, s.metrics.results[r.Result])
	if r.Err != nil && s.failures.IsNew([2]string{r.Server, r.Reason}) {
		s.logger.Warn("a request to a debuginfod server failed; later ones with this reason are only counted",
			zap.String("server", r.Server), zap.String("reason", r.Reason), zap.Error(r.Err))
	}
}

// shutdownWait is how long Shutdown waits for lookups to end.
const shutdownWait = 5 * time.Second

// Shutdown ends the workers.
func (s *symbolizer) Shutdown(ctx context.Context) error {
	s.stop()
	s.stopped.Wait()
	s.metrics.Shutdown()
	if s.resolver == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, shutdownWait,
		fmt.Errorf("a lookup did not end within %s: a file system or a server does not answer", shutdownWait))
	defer cancel()
	return s.resolver.Close(ctx)
}

// ConsumeProfiles adds functions to the locations of a message and passes it on.
func (s *symbolizer) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	m := message{symbolizer: s, profiles: pd, dictionary: pd.Dictionary()}
	m.symbolize(ctx)
	return s.next.ConsumeProfiles(ctx, m.profiles)
}

// reportedModules is how many files a report lists, reportInterval how often there is one.
const (
	reportedModules = 10
	reportInterval  = 10 * time.Minute
)

// logUnresolved logs the files without symbols.
func (s *symbolizer) logUnresolved() {
	top, all := s.resolver.DrainUnresolved(reportedModules)
	if len(top) == 0 {
		return
	}
	lines := make([]string, len(top))
	for i, u := range top {
		lines[i] = fmt.Sprintf("%s (%s, build id %s): %d", u.Path, u.Reason, cmp.Or(u.IDs.String(), "unknown"), u.Locations)
	}
	s.logger.Info("locations without function names; add a file with symbols to one of the sources",
		zap.Int("locations", all), zap.Duration("interval", reportInterval), zap.Strings("top", lines))
}
