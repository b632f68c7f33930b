// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pprofexporter/internal/files"
	"github.com/otelcol-profiles/otelcol-profiles/exporter/pprofexporter/page"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/api"
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
	// warned is when each reason was last logged.
	warned [store.NumRefused]time.Time
}

// pageFirst is the exporter with the queue of its files. The store is in front of the queue, so that the page has each message at
// once and exactly once, whatever becomes of files.
type pageFirst struct {
	xexporter.Profiles // the queue
	*pprofExporter
}

// ConsumeProfiles adds pd to the store and passes it on to the queue. It returns no error: a sender that repeated the message would
// have it in the page twice. The queue counts and logs what it does not accept.
func (e pageFirst) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	now := time.Now()
	added := e.store.Add(pd, now)
	e.warn(&added)
	_ = e.Profiles.ConsumeProfiles(context.WithValue(ctx, arrival{}, now), pd)
	return nil
}

// arrival is the context key for the time when a message arrived.
type arrival struct{}

// writeFiles writes the files of pd. All attempts name a profile without a time by the arrival of its message. A queue on disk does
// not keep that; each attempt uses its own time then.
func (e *pprofExporter) writeFiles(ctx context.Context, pd pprofile.Profiles) error {
	if e.files == nil {
		return nil
	}
	arrived, ok := ctx.Value(arrival{}).(time.Time)
	if !ok {
		arrived = time.Now()
	}
	return e.files.Write(ctx, pd, arrived)
}

func newPprofExporter(config *Config, set exporter.Settings) (*pprofExporter, error) {
	e := &pprofExporter{config: config, set: set}
	e.store = store.New(store.Config{
		Window: config.Keep.Window, Resolution: config.Keep.Resolution,
		MaxBytes: config.Keep.MaxBytes / 100 * keptShare, MaxSeries: config.Keep.MaxSeries,
		Disk: store.DiskConfig{
			Directory: config.Storage.Directory, Retention: config.Storage.Retention, MaxBytes: config.Storage.MaxBytes, Report: e.report,
		},
	})
	var err error
	if e.metrics, err = newMetrics(set.TelemetrySettings, e.store); err != nil {
		return nil, err
	}
	return e, nil
}

// report logs what the store says about its directory.
func (e *pprofExporter) report(message string, err error) {
	if err != nil {
		e.set.Logger.Error(message, zap.String("directory", e.config.Storage.Directory), zap.Error(err))
		return
	}
	e.set.Logger.Info(message, zap.String("directory", e.config.Storage.Directory))
}

func (e *pprofExporter) start(ctx context.Context, host component.Host) error {
	err := e.store.Open()
	if err != nil {
		return err
	}
	if config := e.config.Files.Get(); config != nil {
		if e.files, err = files.NewWriter(*config, e.set.Logger, files.Counters{
			Written: e.metrics.ExporterPprofFilesWritten, Deleted: e.metrics.ExporterPprofFilesDeleted, Dropped: e.metrics.ExporterPprofFilesDropped,
			DroppedSamples: e.metrics.ExporterPprofFilesDroppedSamples,
		}); err != nil {
			return err
		}
	}
	cfg := &e.config.Server
	settings := e.settings()
	server, err := cfg.HTTP.ToServer(ctx, host.GetExtensions(), e.set.TelemetrySettings, api.New(settings))
	if err != nil {
		return err
	}
	server.WriteTimeout = settings.ServerTimeout()
	listener, err := cfg.HTTP.ToListener(ctx)
	if err != nil {
		return err
	}
	e.address = listener.Addr()
	e.server = httpserver.Start(server, listener, httpserver.Options{
		OnFailure: func(err error) { componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(err)) },
		Browsers:  api.Browsers(cfg.AllowedHosts, "add the name to `server.allowed_hosts`"),
	})
	e.set.Logger.Info("flame graphs of what arrives: open " + e.url())
	stopping, cancel := context.WithCancel(context.Background())
	e.stopping = cancel
	e.running.Go(func() { expire(stopping, e.store.Maintain) })
	if e.files != nil {
		// On its own: a disk that hangs must not keep old profiles in memory.
		e.running.Go(func() { expire(stopping, func(now time.Time) { e.files.Expire(stopping, now) }) })
	}
	return nil
}

func (e *pprofExporter) settings() api.Settings {
	cfg := &e.config.Server
	return api.Settings{
		Store: e.store, Page: page.Files, Version: e.set.BuildInfo.Version, MaxBytes: e.config.Keep.MaxBytes,
		Files: e.files != nil, MaxConcurrent: cfg.MaxConcurrentQueries,
		Timeout: cfg.QueryTimeout, ReadTimeout: cfg.HTTP.WriteTimeout, Observe: e.metrics.query,
		TimeoutHint: "`server.query_timeout` can be raised",
	}
}

// expire calls deleteOld now and every expireInterval, until ctx ends.
func expire(ctx context.Context, deleteOld func(now time.Time)) {
	tick := time.NewTicker(expireInterval)
	defer tick.Stop()
	for {
		deleteOld(time.Now())
		select {
		case <-tick.C:
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
	errs = append(errs, e.store.Close())
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
