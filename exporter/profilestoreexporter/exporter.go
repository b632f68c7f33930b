// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilestoreexporter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilestoreexporter/page"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/worker"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/answers"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/api"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/clickhouse"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/mcp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/model"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/query"
)

// keptShare is the part of keep.max_bytes that the store may occupy, in percent. The rest is for messages and queries
// under way, and for the garbage that they leave.
const keptShare = 70

// maintainInterval is how often old profiles are deleted, whether or not anything arrives.
const maintainInterval = 10 * time.Second

// storeExporter keeps profiles in a store and serves them.
type storeExporter struct {
	config  *Config
	set     exporter.Settings
	store   *store.Store
	metrics *metrics
	// querier answers from the store, or from ClickHouse.
	querier *answers.Querier

	server *httpserver.Server
	// closeIdle closes the connections to ClickHouse.
	closeIdle func()
	stopping  context.CancelFunc
	running   sync.WaitGroup

	mu sync.Mutex
	// warned is when each reason was last logged.
	warned [model.NumRefused]time.Time
	// warnedAlternating is when wrong totals were last logged.
	warnedAlternating time.Time
}

// consume adds pd to the store, and returns when it is kept: with a directory, when it is in the log. It returns an
// error if there is no room; then nothing of pd is kept. With ClickHouse another exporter of the pipeline keeps
// profiles: this one only counts them.
func (e *storeExporter) consume(_ context.Context, pd pprofile.Profiles) error {
	if e.config.ClickHouse.HasValue() {
		e.store.Refuse(model.RefusedElsewhere, pd.ProfileCount())
		return nil
	}
	added := e.store.Add(pd, time.Now())
	e.warn(&added)
	if errors.Is(added.Err, store.ErrMessageTooLarge) {
		return consumererror.NewPermanent(added.Err)
	}
	return added.Err
}

func newStoreExporter(config *Config, set exporter.Settings) (*storeExporter, error) {
	e := &storeExporter{config: config, set: set}
	e.store = store.New(store.Config{
		Window: config.Keep.Window, Resolution: config.Keep.Resolution,
		MaxBytes: config.Keep.MaxBytes / 100 * keptShare, MaxSeries: config.Keep.MaxSeries,
		Disk: store.DiskConfig{
			Directory: config.Storage.Directory, Retention: config.Storage.Retention, MaxBytes: config.Storage.MaxBytes,
			Report:       e.report,
			Downsampling: store.Downsampling{After: config.Storage.Downsample.After, Step: config.Storage.Downsample.Step},
		},
	})
	e.querier = e.store.Querier
	var err error
	if e.metrics, err = newMetrics(set.TelemetrySettings, e.store); err != nil {
		return nil, err
	}
	return e, nil
}

// report logs the store's reports about its directory.
func (e *storeExporter) report(message string, err error) {
	level := zap.InfoLevel
	if err != nil {
		level = zap.ErrorLevel
	}
	e.set.Logger.Log(level, message, zap.String("directory", e.config.Storage.Directory), zap.Error(err))
}

func (e *storeExporter) start(ctx context.Context, host component.Host) error {
	if err := e.open(ctx, host); err != nil {
		return err
	}
	settings, cfg := e.settings(), &e.config.Server
	served := cfg.HTTP
	served.WriteTimeout = settings.ServerTimeout()
	server := httpserver.HTTP{Config: &served,
		Browsers: api.Browsers(cfg.AllowedHosts, "add the name to `server.allowed_hosts`")}
	var err error
	e.server, err = server.Start(ctx, api.New(settings), httpserver.Env{Host: host, Telemetry: e.set.TelemetrySettings})
	if err != nil {
		return err
	}
	e.set.Logger.Info("flame graphs of the received profiles: open " + e.url())
	stopping, cancel := context.WithCancel(context.Background())
	e.stopping = cancel
	e.running.Go(func() {
		worker.Every(stopping, 0, maintainInterval, func() { e.store.MaintainContext(stopping, time.Now()) })
	})
	return nil
}

// open opens the store, or the client of ClickHouse.
func (e *storeExporter) open(ctx context.Context, host component.Host) error {
	cfg := e.config.ClickHouse.Get()
	if cfg == nil {
		return e.store.Open()
	}
	client, err := cfg.Client.ToClient(ctx, host.GetExtensions(), e.set.TelemetrySettings)
	if err != nil {
		return err
	}
	client.CheckRedirect = httpserver.KeepMethod
	engine, err := clickhouse.New(clickhouse.Config{
		Client: client, Endpoint: cfg.Client.Endpoint, Database: cfg.Database, Table: cfg.Table,
		Username: cfg.Username, Password: string(cfg.Password), MaxResultRows: cfg.MaxResultRows,
		MaxResultBytes: cfg.MaxResultBytes,
	})
	if err != nil {
		return err
	}
	e.querier = answers.NewEngineSource(engine, cfg.Window, e.config.Keep.Resolution, time.Now).Querier
	e.closeIdle = client.CloseIdleConnections
	e.set.Logger.Info("the page shows the profiles in ClickHouse; another exporter of the pipeline must write profiles there",
		zap.String("endpoint", redact.RawURL(cfg.Client.Endpoint)), zap.String("database", cfg.Database),
		zap.String("table", cfg.Table))
	return nil
}

func (e *storeExporter) settings() api.Settings {
	cfg := &e.config.Server
	settings := api.Settings{
		Store: e.querier, Page: page.Files, Version: e.set.BuildInfo.Version, MaxBytes: e.config.Keep.MaxBytes,
		Limits: query.Limits{MaxConcurrent: cfg.MaxConcurrentQueries, Timeout: cfg.QueryTimeout, Observe: e.metrics.query,
			TimeoutHint: "`server.query_timeout` can be raised"},
		ReadTimeout: cfg.HTTP.WriteTimeout, SourceLink: e.config.SourceLink,
	}
	if config := e.config.MCP.Get(); config != nil {
		settings.MCP = func(queries *query.Queries) http.Handler {
			return mcp.Handler(mcp.Settings{
				Store: e.querier, Queries: queries, Version: settings.Version, DefaultTime: config.DefaultTime, HasPage: true,
				Now: time.Now,
			})
		}
	}
	return settings
}

// shutdown waits for answers under way.
func (e *storeExporter) shutdown(ctx context.Context) error {
	if e.stopping != nil {
		e.stopping()
	}
	e.running.Wait()
	var errs []error
	if e.server != nil {
		errs = append(errs, e.server.Shutdown(ctx))
	}
	if e.closeIdle != nil {
		e.closeIdle()
	}
	errs = append(errs, e.store.Close())
	e.metrics.Shutdown()
	return errors.Join(errs...)
}

// url returns the bound address as a URL for a browser on this machine.
func (e *storeExporter) url() string {
	scheme := "http"
	if e.config.Server.HTTP.TLS.HasValue() {
		scheme = "https"
	}
	tcp, ok := e.server.Addr().(*net.TCPAddr)
	if !ok {
		return e.server.Addr().String()
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() || tcp.IP.IsLoopback() {
		host = "localhost"
	}
	return fmt.Sprintf("%s://%s/", scheme, net.JoinHostPort(host, fmt.Sprint(tcp.Port)))
}

// refusals are the log lines about what the store does not keep.
var refusals = [model.NumRefused]string{
	model.RefusedSeries:  "profiles refused for `keep.max_series`; drop resource attributes with many values, or raise the limit",
	model.RefusedSize:    "profiles refused: a message is too large for `keep.max_bytes`; send smaller ones, or raise the limit",
	model.RefusedFull:    "profiles refused: the disk cannot be written; senders are asked to retry",
	model.RefusedOrder:   "profiles dropped: their totals are older than those before of the same series",
	model.RefusedSamples: "samples dropped: their message lacks entries that the samples refer to",
}

// warn logs refusals, drops and wrong totals, once a minute for each reason.
func (e *storeExporter) warn(added *store.Added) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if added.Alternating != "" && time.Since(e.warnedAlternating) >= time.Minute {
		e.warnedAlternating = time.Now()
		e.set.Logger.Warn(kind.Alternates, zap.String("service", added.Alternating))
	}
	for reason, n := range added.Refused {
		if n == 0 || time.Since(e.warned[reason]) < time.Minute {
			continue
		}
		e.warned[reason] = time.Now()
		level := zap.WarnLevel
		if model.Refused(reason) == model.RefusedFull {
			level = zap.ErrorLevel
		}
		e.set.Logger.Log(level, refusals[reason], zap.Int("count", n), zap.Error(added.Err))
	}
}
