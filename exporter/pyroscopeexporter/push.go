// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/google/uuid"
	"github.com/klauspost/compress/gzip"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pyroscopeexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprofencode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profilekind"
)

type pyroscopeExporter struct {
	cfg       *Config
	telemetry component.TelemetrySettings
	userAgent string
	url       string
	// shownURL is the URL without what is secret in it.
	shownURL string
	labeler  *labeler
	metrics  *metadata.TelemetryBuilder
	client   *http.Client

	batches sync.Pool // of *compact.Batch
	writers sync.Pool // of *gzip.Writer
}

func (e *pyroscopeExporter) start(ctx context.Context, host component.Host) (err error) {
	e.client, err = e.cfg.Client.ToClient(ctx, host.GetExtensions(), e.telemetry)
	return err
}

func (e *pyroscopeExporter) shutdown(context.Context) error {
	if e.client != nil {
		e.client.CloseIdleConnections()
	}
	return nil
}

// maxGrowth is how much larger the parts of what is split may be, in all.
const maxGrowth = 2

// push sends profiles as series. What the server refuses for the moment is in the error, to be retried; what it refuses
// permanently is counted, and in the error if there is nothing to retry.
func (e *pyroscopeExporter) push(ctx context.Context, pd pprofile.Profiles) error {
	prepared := pprofile.NewProfiles()
	pd.CopyTo(prepared)
	prepare(prepared, e.cfg.Labels.SampleExclude)
	p := pusher{pyroscopeExporter: e}
	p.split(ctx, prepared, e.cfg.MaxProfileBytes)
	switch {
	case p.retryErr != nil:
		if p.permanentErr != nil {
			e.telemetry.Logger.Error("the server refused profiles permanently; they are dropped", zap.Error(p.permanentErr))
		}
		return xconsumererror.NewProfiles(p.retryErr, new(compact.Batch).Merge(p.retry))
	case p.permanentErr != nil:
		return consumererror.NewPermanent(p.permanentErr)
	default:
		return nil
	}
}

// pusher sends one message. Nothing is sent after the first answer that asks to retry.
type pusher struct {
	*pyroscopeExporter
	retry        []pprofile.Profiles
	retryErr     error
	permanentErr error
}

// split sends pd in parts of at most maxBytes, except for a stack that is larger alone.
func (p *pusher) split(ctx context.Context, pd pprofile.Profiles, maxBytes int) {
	batch, _ := p.batches.Get().(*compact.Batch)
	if batch == nil {
		batch = new(compact.Batch)
	}
	defer p.batches.Put(batch)
	batch.Reset(compact.Options{MaxBytes: maxBytes, MaxGrowth: maxGrowth, CombineSamples: true})
	batch.Add(pd)
	for part := range batch.Parts() {
		switch samples := mostSamples(part.Profiles); {
		case p.retryErr != nil:
			p.retry = append(p.retry, part.Profiles)
		case samples > p.cfg.MaxProfileSamples && maxBytes > smallestPart:
			size := min(maxBytes, (&pprofile.ProtoMarshaler{}).ProfilesSize(part.Profiles))
			p.split(ctx, part.Profiles, max(smallestPart, int(int64(size)*int64(p.cfg.MaxProfileSamples)/int64(samples))))
		default:
			p.send(ctx, part.Profiles)
		}
	}
}

// smallestPart keeps splitting by the number of samples from going on for ever. In bytes.
const smallestPart = 4 << 10

// mostSamples returns the number of samples of the profile that has the most.
func mostSamples(pd pprofile.Profiles) (most int) {
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, profile := range sp.Profiles().All() {
				most = max(most, profile.Samples().Len())
			}
		}
	}
	return most
}

// send sends a series for each pprof of a part.
func (p *pusher) send(ctx context.Context, part pprofile.Profiles) {
	payloads, _, err := pprofencode.Encode(part)
	if err != nil {
		p.permanentErr = errors.Join(p.permanentErr, err)
		return
	}
	done := map[[3]int]bool{} // profiles that need no retry, by their place in the part
	for _, payload := range payloads {
		s, err := p.series(ctx, part, payload)
		if err == nil {
			if err = p.post(ctx, s); err != nil {
				err = fmt.Errorf("push %s: %w", s.describe(), err)
			}
		}
		p.count(ctx, err)
		if err != nil && !consumererror.IsPermanent(err) {
			p.retryErr = err
			break
		}
		p.permanentErr = errors.Join(p.permanentErr, err)
		for _, i := range payload.ProfileIndices {
			done[[3]int{payload.ResourceIndex, payload.ScopeIndex, i}] = true
		}
	}
	if p.retryErr != nil {
		p.retry = append(p.retry, without(part, done))
	}
}

// The outcomes of a push.
const (
	outcomeAccepted = "accepted"
	outcomeRefused  = "refused"
	outcomeRetry    = "retry"
)

// count counts a series by the error of its push.
func (e *pyroscopeExporter) count(ctx context.Context, err error) {
	outcome := outcomeRetry
	switch {
	case err == nil:
		outcome = outcomeAccepted
	case consumererror.IsPermanent(err):
		outcome = outcomeRefused
	}
	e.metrics.ExporterPyroscopeSeries.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}

// without removes the profiles that are done. It changes part.
func without(part pprofile.Profiles, done map[[3]int]bool) pprofile.Profiles {
	for r, rp := range part.ResourceProfiles().All() {
		for s, sp := range rp.ScopeProfiles().All() {
			i := -1
			sp.Profiles().RemoveIf(func(pprofile.Profile) bool {
				i++
				return done[[3]int{r, s, i}]
			})
		}
	}
	return part
}

func (s *series) describe() string {
	var name, service string
	for _, l := range s.labels {
		switch l.name {
		case labelProfileName:
			name = l.value
		case labelService:
			service = l.value
		}
	}
	return name + " of " + service
}

// series builds the series of a push request for one pprof: its labels, its id and its bytes.
func (e *pyroscopeExporter) series(ctx context.Context, part pprofile.Profiles, payload pprofencode.Payload) (*series, error) {
	resource := part.ResourceProfiles().At(payload.ResourceIndex)
	scope := resource.ScopeProfiles().At(payload.ScopeIndex)
	first := scope.Profiles().At(payload.ProfileIndices[0])
	text := func(i int32) string { return part.Dictionary().StringTable().At(int(i)) }
	stated := ""
	if v, ok := scope.Scope().Attributes().Get(profilekind.NameAttribute); ok {
		stated = v.AsString()
	}
	name := profilekind.Name(stated, text(first.SampleType().TypeStrindex()), text(first.PeriodType().TypeStrindex()))
	labels, dropped := e.labeler.labels(resource.Resource().Attributes(), name)
	if dropped > 0 {
		e.metrics.ExporterPyroscopeDroppedLabels.Add(ctx, int64(dropped))
	}
	compressed, err := e.compress(payload.Bytes)
	if err != nil {
		return nil, consumererror.NewPermanent(err)
	}
	// The id follows from the content, so that a retry has the same.
	return &series{labels: labels, id: uuid.NewSHA1(uuid.Nil, payload.Bytes).String(), pprof: compressed}, nil
}

func (e *pyroscopeExporter) compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, _ := e.writers.Get().(*gzip.Writer)
	if w == nil {
		w = gzip.NewWriter(&out)
	} else {
		w.Reset(&out)
	}
	defer e.writers.Put(w)
	_, err := w.Write(data)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}
