// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"net/url"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/redact"
)

// transferTime is the least that a timeout leaves for the answer after the target has recorded.
const transferTime = 5 * time.Second

// remote scrapes one URL.
type remote struct {
	cfg    *RemoteConfig
	set    component.TelemetrySettings
	ingest *ingester
	worker worker

	target *url.URL
	shown  string // the target without credentials
	id     identity
	fetcher
	log changeLog
}

func newRemote(cfg *RemoteConfig, set component.TelemetrySettings, in *ingester) *remote {
	return &remote{cfg: cfg, set: set, ingest: in}
}

func (*remote) name() string { return sourceRemote }

// Start begins to scrape after the initial delay.
func (r *remote) Start(ctx context.Context, host component.Host) error {
	var err error
	if r.target, err = url.Parse(r.cfg.Client.Endpoint); err != nil {
		return errors.New("`endpoint` must be a URL")
	}
	r.shown = redact.URL(r.target)
	r.id = newIdentity()
	r.id.derived.PutStr(attributeServerAddress, r.target.Hostname())
	r.id.derived.PutInt(attributeServerPort, int64(effectivePort(r.target)))
	r.id.derived.PutStr(attributeURLFull, r.shown)
	r.log = changeLog{logger: r.set.Logger.With(zap.String("url", r.shown))}

	config := r.cfg.Client
	config.Timeout = r.timeout()
	if r.client, err = config.ToClient(ctx, host.GetExtensions(), r.set); err != nil {
		return err
	}
	r.client.CheckRedirect = sameOriginOnly
	r.maxBytes = int64(r.ingest.cfg.Limits.MaxProfileBytes)
	r.worker.start(func(stopping, deliver context.Context) {
		every(stopping, r.cfg.InitialDelay, r.cfg.CollectionInterval, func() { r.scrape(stopping, deliver) })
	})
	return nil
}

// Shutdown breaks off a request under way; what was fetched before is delivered.
func (r *remote) Shutdown(ctx context.Context) error {
	err := r.worker.shutdown(ctx)
	r.client.CloseIdleConnections()
	return err
}

// timeout is the configured one, raised above the time for which the target records.
func (r *remote) timeout() time.Duration {
	configured := r.cfg.Client.Timeout
	if configured <= 0 {
		return 0
	}
	return max(configured, recordingTime(r.target)+transferTime)
}

func (r *remote) scrape(stopping, deliver context.Context) {
	claim := r.ingest.budget.Begin()
	defer claim.Release()
	data, err := r.fetcher.get(stopping, r.target, r.shown, claim)
	switch {
	case err == nil:
		err = r.ingest.ingest(deliver, payload{data: data, identity: r.id, claim: claim}, 0)
	case stopping.Err() != nil:
		return // broken off by the shutdown, which is no fault
	default:
		r.ingest.countRejected(deliver, err)
	}
	r.log.note(stateOf(err), err)
}
