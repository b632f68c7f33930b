// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pprofexporter/internal/files"
	"github.com/otelcol-profiles/otelcol-profiles/exporter/pprofexporter/page"
	"github.com/otelcol-profiles/otelcol-profiles/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/storeapi"
)

// keptShare is the part of keep.max_bytes that the store may occupy, in percent. The rest is for messages and queries under way,
// and for the garbage that they leave.
const keptShare = 70

// expireInterval is how often old profiles and files are deleted, whether or not anything arrives.
const expireInterval = 10 * time.Second

// pprofExporter keeps profiles in a store, serves them, and writes them to files.
type pprofExporter struct {
	config  *Config
	set     exporter.Settings
	store   *store.Store
	metrics *metrics
	files   *files.Writer

	server   *httpserver.Server
	address  net.Addr
	stopping context.CancelFunc
	running  sync.WaitGroup

	mu sync.Mutex
	// retried are the messages that are in the store, but not in files. When they come again, they are not added to the store.
	retried map[pprofile.Profiles]attempt
	// warned is when each reason was last logged.
	warned [store.NumRefused]time.Time
}

// attempt is when a message was added to the store, and when writing its files last failed.
type attempt struct{ added, failed time.Time }

// maxRetried bounds retried, for a queue of half as many consumers or fewer. Nothing reports that a message was given up, but each
// consumer retries only one at a time.
const maxRetried = 64

func newPprofExporter(config *Config, set exporter.Settings) (*pprofExporter, error) {
	e := &pprofExporter{config: config, set: set, retried: map[pprofile.Profiles]attempt{}}
	e.store = store.New(store.Config{
		Window: config.Keep.Window, Resolution: config.Keep.Resolution,
		MaxBytes: config.Keep.MaxBytes / 100 * keptShare, MaxSeries: config.Keep.MaxSeries,
	})
	var err error
	if e.metrics, err = newMetrics(set.TelemetrySettings, e.store); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *pprofExporter) start(ctx context.Context, host component.Host) error {
	var err error
	if config := e.config.Files.Get(); config != nil {
		if e.files, err = files.NewWriter(*config, e.set.Logger, files.Counters{
			Written: e.metrics.ExporterPprofFilesWritten, Deleted: e.metrics.ExporterPprofFilesDeleted, Dropped: e.metrics.ExporterPprofFilesDropped,
			DroppedSamples: e.metrics.ExporterPprofFilesDroppedSamples,
		}); err != nil {
			return err
		}
	}
	cfg := &e.config.Server
	server, err := cfg.HTTP.ToServer(ctx, host.GetExtensions(), e.set.TelemetrySettings, e.handler())
	if err != nil {
		return err
	}
	listener, err := cfg.HTTP.ToListener(ctx)
	if err != nil {
		return err
	}
	e.address = listener.Addr()
	e.server = httpserver.Start(server, listener, httpserver.Options{
		DrainTimeout: cfg.DrainTimeout,
		OnFailure:    func(err error) { componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err)) },
	})
	e.set.Logger.Info("flame graphs of what arrives: open " + e.url())
	stopping, cancel := context.WithCancel(context.Background())
	e.stopping = cancel
	e.running.Go(func() { e.expire(stopping) })
	return nil
}

func (e *pprofExporter) handler() http.Handler {
	cfg := &e.config.Server
	return storeapi.New(storeapi.Settings{
		Store: e.store, Page: page.Files, Version: e.set.BuildInfo.Version, MaxBytes: e.config.Keep.MaxBytes,
		Files: e.files != nil, AllowedHosts: cfg.AllowedHosts, MaxConcurrent: cfg.MaxConcurrentQueries,
		Timeout: cfg.QueryTimeout, Observe: e.metrics.query,
		HostHint: "add the name to `server.allowed_hosts`", TimeoutHint: "`server.query_timeout` can be raised",
	})
}

// expire deletes what is too old, in the store and among the files, until ctx ends.
func (e *pprofExporter) expire(ctx context.Context) {
	tick := time.NewTicker(expireInterval)
	defer tick.Stop()
	for {
		if e.files != nil {
			e.files.Expire(ctx, time.Now())
		}
		select {
		case <-tick.C:
			e.store.Expire(time.Now())
			e.forget(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// shutdown waits for answers under way.
func (e *pprofExporter) shutdown(ctx context.Context) error {
	if e.stopping != nil {
		e.stopping()
	}
	e.running.Wait()
	var errs []error
	if e.server != nil {
		errs = append(errs, e.server.Shutdown(ctx))
	}
	if e.files != nil {
		errs = append(errs, e.files.Close())
	}
	e.metrics.Shutdown()
	return errors.Join(errs...)
}

// url returns the bound address as a URL for a browser on this machine.
func (e *pprofExporter) url() string {
	scheme := "http"
	if e.config.Server.HTTP.TLS.HasValue() {
		scheme = "https"
	}
	tcp, ok := e.address.(*net.TCPAddr)
	if !ok {
		return e.address.String()
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() || tcp.IP.IsLoopback() {
		host = "localhost"
	}
	return fmt.Sprintf("%s://%s/", scheme, net.JoinHostPort(host, fmt.Sprint(tcp.Port)))
}

// push adds pd to the store and writes its files. Only writing files can fail, and is retried.
func (e *pprofExporter) push(ctx context.Context, pd pprofile.Profiles) error {
	at, isRetried := e.addedAt(pd)
	if !isRetried {
		at = time.Now()
		added := e.store.Add(pd, at)
		e.warn(&added)
	}
	if e.files == nil {
		return nil
	}
	err := e.files.Write(ctx, pd, at)
	if err != nil && !consumererror.IsPermanent(err) && e.config.Retry.Enabled {
		e.remember(pd, attempt{added: at, failed: time.Now()})
	}
	return err
}

// addedAt returns when pd was added to the store, if it is retried.
func (e *pprofExporter) addedAt(pd pprofile.Profiles) (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known, ok := e.retried[pd]
	delete(e.retried, pd)
	return known.added, ok
}

// remember notes that pd is in the store and will be retried, in place of the message that failed longest ago if there are too
// many.
func (e *pprofExporter) remember(pd pprofile.Profiles, failed attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	limit := maxRetried
	if queue := e.config.Queue.Get(); queue != nil {
		limit = max(limit, 2*queue.NumConsumers)
	}
	if len(e.retried) >= limit {
		oldest, at := pprofile.Profiles{}, failed.failed
		for message, known := range e.retried {
			if known.failed.Before(at) {
				oldest, at = message, known.failed
			}
		}
		delete(e.retried, oldest)
	}
	e.retried[pd] = failed
}

// forget removes the messages that were given up: otherwise they would have been retried by now.
func (e *pprofExporter) forget(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	// The time between two attempts is random, and at most twice the configured one.
	longest := 2*max(e.config.Retry.InitialInterval, e.config.Retry.MaxInterval) + expireInterval
	maps.DeleteFunc(e.retried, func(_ pprofile.Profiles, known attempt) bool { return now.Sub(known.failed) > longest })
}

// warn logs what was not kept, once a minute for each reason.
func (e *pprofExporter) warn(added *store.Added) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for reason, n := range added.Refused {
		if n == 0 || time.Since(e.warned[reason]) < time.Minute {
			continue
		}
		e.warned[reason] = time.Now()
		switch store.Refused(reason) {
		case store.RefusedSeries:
			e.set.Logger.Warn("profiles are not kept: there are more series than `keep.max_series`; drop resource attributes of many values, or raise it",
				zap.Int("profiles", n), zap.Int("max_series", e.config.Keep.MaxSeries))
		case store.RefusedSize:
			e.set.Logger.Warn("profiles are not kept: they are too large for `keep.max_bytes`",
				zap.Int("profiles", n), zap.Int("max_bytes", e.config.Keep.MaxBytes))
		default:
			e.set.Logger.Warn("samples are not kept: they refer to entries that their message does not have", zap.Int("samples", n))
		}
	}
}
