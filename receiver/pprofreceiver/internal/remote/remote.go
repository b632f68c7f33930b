// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package remote is the source `remote`: it scrapes one URL at an interval.
package remote

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/redact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/worker"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/fetch"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/ingest"
)

// Remote scrapes one URL.
type Remote struct {
	cfg    *Config
	set    component.TelemetrySettings
	ingest *ingest.Ingester
	worker worker.Worker

	target  *url.URL
	shown   string // the target without credentials
	id      ingest.Identity
	fetcher fetch.Fetcher
	log     *telemetry.Changes
}

// New returns a source that is not started.
func New(cfg *Config, set component.TelemetrySettings, in *ingest.Ingester) *Remote {
	return &Remote{cfg: cfg, set: set, ingest: in}
}

// Start begins to scrape after the initial delay.
func (r *Remote) Start(ctx context.Context, host component.Host) error {
	var err error
	if r.target, err = url.Parse(r.cfg.Client.Endpoint); err != nil {
		return errors.New("`endpoint` must be a URL")
	}
	r.shown = redact.URL(r.target)
	r.id = ingest.NewIdentity()
	r.id.Derived.PutStr(ingest.AttributeServerAddress, r.target.Hostname())
	r.id.Derived.PutInt(ingest.AttributeServerPort, int64(fetch.Port(r.target)))
	r.id.Derived.PutStr(ingest.AttributeURLFull, r.shown)
	r.log = ingest.Changes(r.set.Logger.With(zap.String("url", r.shown)))

	config := r.cfg.Client
	config.Timeout = r.timeout()
	if r.fetcher.Client, err = config.ToClient(ctx, host.GetExtensions(), r.set); err != nil {
		return err
	}
	r.fetcher.Client.CheckRedirect = httpserver.SameOriginOnly
	r.fetcher.MaxBytes = r.ingest.MaxBytes()
	r.fetcher.Header = http.Header{"Accept-Encoding": {"gzip"}}
	r.worker.Start(func(stopping, deliver context.Context) {
		worker.Every(stopping, r.cfg.InitialDelay, r.cfg.CollectionInterval, func() { r.scrape(stopping, deliver) })
	})
	return nil
}

// Shutdown cancels a request in progress; it delivers a profile that was fetched before.
func (r *Remote) Shutdown(ctx context.Context) error {
	err := r.worker.Shutdown(ctx)
	r.fetcher.Client.CloseIdleConnections()
	return err
}

// timeout returns the configured timeout, raised above the time for which the target records.
func (r *Remote) timeout() time.Duration {
	configured := r.cfg.Client.Timeout
	if configured <= 0 {
		return 0
	}
	return max(configured, recordingTime(r.target)+fetch.TransferTime)
}

// recordingTime returns how long the target records before it answers: `seconds` of the query, or the default of Go's
// net/http/pprof for a CPU profile.
func recordingTime(u *url.URL) time.Duration {
	const longest = 24 * time.Hour // bounds the timeout, regardless of the query
	if asked := u.Query().Get("seconds"); asked != "" {
		seconds, err := strconv.ParseFloat(asked, 64)
		if err != nil || !(seconds > 0) {
			return 0
		}
		return time.Duration(min(seconds, longest.Seconds()) * float64(time.Second))
	}
	if path.Clean(u.Path) == "/debug/pprof/profile" {
		return 30 * time.Second
	}
	return 0
}

func (r *Remote) scrape(stopping, deliver context.Context) {
	reservation := r.ingest.Begin()
	defer reservation.Release()
	began := time.Now()
	data, err := r.fetcher.Get(stopping, r.target, r.shown, reservation)
	if err == nil {
		err = r.ingest.Ingest(deliver, ingest.Payload{
			Data: data, Identity: r.id, Reservation: reservation,
			Temporality:  cmp.Or(kind.Temporality(r.cfg.Temporality), ingest.TemporalityOfPath(r.target.Path)),
			IsDifference: fetch.HasRecorded(recordingTime(r.target), time.Since(began)),
		}, 0)
	} else if stopping.Err() != nil {
		return // cancelled by the shutdown
	}
	r.ingest.CountRejected(deliver, err)
	r.log.Note(ingest.StateOf(err), err)
}
