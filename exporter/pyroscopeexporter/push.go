// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscopeexporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/google/uuid"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pyroscopeexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/otlp/kind"
	"github.com/otelcol-profiles/otelcol-profiles/internal/pprof/encode"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/exportreport"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/httpclient"
	"github.com/otelcol-profiles/otelcol-profiles/internal/service/telemetry"
)

type pyroscopeExporter struct {
	cfg     *Config
	logger  *zap.Logger
	client  httpclient.Client
	labeler *labeler
	metrics *metadata.TelemetryBuilder

	batches compact.Pool
}

func (e *pyroscopeExporter) shutdown(context.Context) error {
	e.client.Shutdown()
	return nil
}

// push sends profiles as series. The error carries the profiles that the server refused temporarily, for a retry.
func (e *pyroscopeExporter) push(ctx context.Context, pd pprofile.Profiles) error {
	p := pusher{pyroscopeExporter: e, report: exportreport.Report{Unit: "series"},
		budget: budget{message: pd, limit: minBytes}}
	if excess, ok := p.sendWhole(ctx, pd); !ok {
		p.sendPieces(ctx, pd, excess)
	}
	var left pprofile.Profiles
	if p.retryErr != nil {
		left = new(compact.Batch).Merge(p.retry)
	}
	return p.report.Finish(ctx, e.logger, p.retryErr, left)
}

// pusher sends one message.
type pusher struct {
	*pyroscopeExporter
	retry []pprofile.Profiles
	// failures is how many series must be retried, retryErr the error of the first one. Nothing is sent once isStopped is
	// set.
	failures  int
	retryErr  error
	isStopped bool
	// report has the accepted and the lost samples.
	report exportreport.Report
	// budget is for the labels of all series.
	budget budget
}

// budget bounds what many series repeat of one message: minBytes, and maxExpansion times the message's size.
type budget struct {
	message pprofile.Profiles
	used    int
	limit   int
	isSized bool
}

// allow reports whether n more bytes are within the budget, and counts them if so.
func (b *budget) allow(n int) bool {
	if b.used+n > b.limit && !b.isSized {
		b.isSized = true
		b.limit += maxExpansion * (&pprofile.ProtoMarshaler{}).ProfilesSize(b.message)
	}
	if b.used+n > b.limit {
		return false
	}
	b.used += n
	return true
}

// maxFailures is how many series may fail before the rest is left for the retry. One that the server always asks to
// send later, for example because it is too large for a limit on the rate, must not keep all the others from arriving.
const maxFailures = 3

// fail notes that a series must be retried.
func (p *pusher) fail(err error) {
	p.failures++
	p.retryErr = cmp.Or(p.retryErr, err)
	p.isStopped = p.isStopped || p.failures >= maxFailures || !errors.Is(err, errOfSeries)
}

// sendWhole sends pd if it follows OTLP's rules and no pprof is too large, as is usual. It reports whether it did, and
// otherwise the excess of its pprofs. pd is only read.
func (p *pusher) sendWhole(ctx context.Context, pd pprofile.Profiles) (excess float64, ok bool) {
	size, done, err := p.send(ctx, newView(pd, p.cfg), false)
	if err != nil || size.excess > 1 {
		return size.excess, false
	}
	if p.retryErr != nil {
		left := pprofile.NewProfiles()
		pd.CopyTo(left)
		removeProfiles(left, done)
		p.retry = append(p.retry, left)
	}
	return 0, true
}

// Samples of OTLP share stacks and attributes, which samples of pprof repeat. Together the pprofs of a message have at
// most minBytes plus maxExpansion times its size as OTLP, like those of one call of Encode.
const (
	minBytes     = 1 << 20
	maxExpansion = 64
)

// pieces sends a message in pieces, each with a share of every profile's samples.
type pieces struct {
	*pusher
	batch *compact.Batch
	room  int // how many bytes the pprofs may still take
}

// sendPieces sends a message that breaks rules, or whose pprofs have an excess.
func (p *pusher) sendPieces(ctx context.Context, pd pprofile.Profiles, excess float64) {
	all := pieces{p, p.batches.Get(compact.Options{CombineSamples: true}),
		minBytes + maxExpansion*(&pprofile.ProtoMarshaler{}).ProfilesSize(pd)}
	defer p.batches.Put(all.batch)
	all.batch.Add(pd)
	p.drop(ctx, droppedInvalid, all.batch.TakeStats().DroppedSamples())
	all.cut(ctx, all.batch.All(), excess)
}

// cut sends a piece as smaller ones, or as it is if it has no excess.
func (p *pieces) cut(ctx context.Context, piece compact.Piece, excess float64) {
	n := 1
	if excess > 1 {
		n = int(math.Ceil(1.1 * excess))
	}
	for _, smaller := range p.batch.Cut(piece, n, false) {
		p.send(ctx, smaller, n > 1)
	}
}

// send sends a piece, or smaller ones if a pprof is too large for the server. isPart means that there are others with
// samples of the same profiles.
func (p *pieces) send(ctx context.Context, piece compact.Piece, isPart bool) {
	part := p.batch.Part(piece).Profiles
	if isPart {
		separate(part)
	}
	samples, before := part.SampleCount(), p.failures
	switch {
	case p.isStopped:
		p.retry = append(p.retry, part)
		return
	case p.room < 0:
		p.countDroppedSamples(ctx, droppedTooLarge, samples)
		p.report.Refused(samples, "", fmt.Errorf("dropped: as pprof the profiles take more than %d times their size as OTLP",
			maxExpansion))
		return
	}
	size, done, err := p.pusher.send(ctx, newView(part, p.cfg), !canBeCut(part))
	if err != nil {
		p.report.Refused(samples, "", fmt.Errorf("cannot be encoded: %w", err))
		return
	}
	if done == nil {
		p.cut(ctx, piece, size.excess)
		return
	}
	if p.room -= size.bytes; p.isStopped || p.failures > before {
		removeProfiles(part, done)
		p.retry = append(p.retry, part)
	}
}

// separate moves the profiles of a piece to other times within their seconds: of several profiles with the same series
// and time, Pyroscope keeps only one. Profiles of the piece that have the same time still do. The new times follow from
// the content, so a message that is sent again gets the same ones.
func separate(part pprofile.Profiles) {
	const second = 1_000_000_000
	hash := fnv.New64a()
	whole := pprofile.NewProfiles() // the marshaler makes references of the attributes' strings, which labels need
	part.CopyTo(whole)
	content, _ := (&pprofile.ProtoMarshaler{}).MarshalProfiles(whole) // cannot fail
	hash.Write(content)
	shift := hash.Sum64() % second
	for profile := range otlp.Profiles(part) {
		if t := uint64(profile.Time()); t != 0 { // else the server has its own for each
			profile.SetTime(pcommon.Timestamp(t - t%second + (t%second+shift)%second))
		}
	}
}

// canBeCut reports whether smaller pieces have smaller pprofs.
func canBeCut(part pprofile.Profiles) bool {
	for profile := range otlp.Profiles(part) {
		if profile.Samples().Len() > 1 {
			return true
		}
	}
	return false
}

// encodedSize is the size of the pprofs of a message or a piece of it.
type encodedSize struct {
	bytes int
	// excess is the size of the largest pprof divided by the server's limit.
	excess float64
}

// send sends a series for each pprof that the profiles become, and returns the positions of the profiles that need no
// retry. If a pprof is larger than the server accepts, it sends nothing unless must is set.
func (p *pusher) send(
	ctx context.Context, v *view, must bool,
) (size encodedSize, done map[position]bool, err error) {
	payloads, stats, err := v.encode()
	if err != nil {
		return size, nil, err
	}
	if stats.Dropped > 0 {
		size.excess = 2
	}
	for _, payload := range payloads {
		size.bytes += len(payload.Bytes)
		size.excess = max(size.excess,
			float64(len(payload.Bytes))/float64(p.cfg.MaxProfileBytes),
			float64(payload.Samples)/float64(p.cfg.MaxProfileSamples))
	}
	if size.excess > 1 && !must {
		return size, nil, nil
	}
	p.drop(ctx, droppedTooLarge, stats.Dropped)
	p.report.Sent(-stats.Dropped) // the following counts whole profiles
	done = map[position]bool{}
	s := source{view: v, resource: -1}
	for _, payload := range payloads {
		t := s.tally(&payload)
		if payload.Samples == 0 {
			p.report.Sent(t.samples)
		} else if p.isStopped {
			break
		} else if err := p.sendSeries(ctx, &s, &payload, &t); err != nil {
			p.fail(err)
			continue
		}
		p.countDroppedLabels(ctx, t.droppedLabels)
		p.countDroppedSamples(ctx, droppedNegative, t.negative)
		for _, i := range payload.ProfileIndices {
			done[position{payload.ResourceIndex, payload.ScopeIndex, i}] = true
		}
	}
	return size, done, nil
}

// The outcomes of a push.
const (
	outcomeAccepted = "accepted"
	outcomeRefused  = "refused"
	outcomeRetry    = "retry"
)

// sendSeries sends one series with the samples that were counted. An error means that it must be retried.
func (p *pusher) sendSeries(ctx context.Context, from *source, payload *encode.Payload, t *tally) error {
	samples := t.samples
	s := p.series(ctx, from, payload, t.labels)
	if !p.budget.allow(s.labelBytes()) {
		p.countDroppedSamples(ctx, droppedTooLarge, samples)
		p.report.Refused(samples, s.describe(),
			fmt.Errorf("dropped: the labels of the message's series take more than %d times its size", maxExpansion))
		return nil
	}
	s.pprof = encode.Gzip(payload.Bytes)
	// The id follows from the content, so that a retry has the same.
	s.id = uuid.NewSHA1(uuid.Nil, s.pprof).String()
	outcome := outcomeAccepted
	err := p.post(ctx, s)
	switch {
	case err == nil:
		p.report.Sent(samples)
	case consumererror.IsPermanent(err):
		outcome = outcomeRefused
		p.report.Refused(samples, s.describe(), err)
		err = nil
	default:
		outcome = outcomeRetry
		err = fmt.Errorf("push %s: %w", s.describe(), err)
	}
	p.metrics.ExporterPyroscopeSeries.Add(ctx, 1, telemetry.Attributes("outcome", outcome))
	return err
}

// The reasons for which samples are dropped.
const (
	droppedInvalid  = "invalid"
	droppedNegative = "negative"
	droppedTooLarge = "too_large"
)

// drop counts samples that the exporter itself does not send.
func (p *pusher) drop(ctx context.Context, reason string, n int) {
	p.report.Lost(n)
	p.countDroppedSamples(ctx, reason, n)
}

func (e *pyroscopeExporter) countDroppedSamples(ctx context.Context, reason string, n int) {
	if n > 0 {
		e.metrics.ExporterPyroscopeDroppedSamples.Add(ctx, int64(n), telemetry.Attributes("reason", reason))
	}
}

func (e *pyroscopeExporter) countDroppedLabels(ctx context.Context, n int) {
	if n > 0 {
		e.metrics.ExporterPyroscopeDroppedLabels.Add(ctx, int64(n))
	}
}

func (s *series) describe() string {
	values := map[string]string{}
	for _, l := range s.labels {
		values[l.name] = l.value
	}
	return values[labelProfileName] + " of " + values[labelService]
}

// source is the message that series are of, and what those of the last resource and scope share.
type source struct {
	*view
	resource, scope int
	labels          resourceLabels
	// stated is the name of the profile according to the scope.
	stated string
	names  kind.Namer
}

// series returns the series of a push request for one pprof, without the pprof. Its samples add at most sampleLabels.
func (p *pusher) series(ctx context.Context, from *source, payload *encode.Payload, sampleLabels int) *series {
	resource := from.pd.ResourceProfiles().At(payload.ResourceIndex)
	scope := resource.ScopeProfiles().At(payload.ScopeIndex)
	isNew := from.resource != payload.ResourceIndex
	if isNew {
		from.labels = p.labeler.ofResource(resource.Resource().Attributes(), &p.budget)
	}
	if isNew || from.scope != payload.ScopeIndex {
		from.stated = kind.Stated(scope.Scope().Attributes())
		from.names.Begin(scope.Scope().Attributes(), scope.Profiles(), from.pd.Dictionary())
	}
	from.resource, from.scope = payload.ResourceIndex, payload.ScopeIndex
	first := scope.Profiles().At(slices.Min(payload.ProfileIndices))
	name := from.names.Name(first, from.stated)
	ofProfile, tooMany := p.labeler.ofProfile(from.pd, first, &p.budget)
	own, totals := []label{{labelProfileName, kind.TypeName(name)}}, 0
	for _, i := range payload.ProfileIndices {
		if kind.ValuesOfProfile(scope.Profiles().At(i), from.pd.Dictionary()) == kind.Cumulative {
			totals++
		}
	}
	switch totals {
	case 0:
		own = append(own, label{labelDelta, "false"})
	case len(payload.ProfileIndices):
		own = append(own, label{labelDelta, "true"}) // the server must subtract all
	}
	labels, dropped := p.labeler.labels(&from.labels, own, ofProfile, sampleLabels)
	p.countDroppedLabels(ctx, tooMany+dropped)
	return &series{labels: labels}
}

// position is that of a profile in a message.
type position struct{ resource, scope, profile int }

func removeProfiles(pd pprofile.Profiles, positions map[position]bool) {
	for r, rp := range pd.ResourceProfiles().All() {
		for s, sp := range rp.ScopeProfiles().All() {
			i := -1
			sp.Profiles().RemoveIf(func(pprofile.Profile) bool {
				i++
				return positions[position{r, s, i}]
			})
		}
	}
}
